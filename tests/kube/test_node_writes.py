"""Cordons: requests sent, and meaning of the API server's responses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from monitor.kube.client import connect
from monitor.kube.node_writes import NodeWrites
from monitor.kube.pod_writes import WriteResult, WriteState
from tests.support import free_port


@contextmanager
def api(code: int, response: dict[str, Any]) -> Iterator[tuple[int, list[tuple[str, str, str, Any]]]]:
    """An API server with this response, and the writes it received."""
    seen: list[tuple[str, str, str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            seen.append((self.command, self.path, self.headers["Content-Type"], body))
            answer = json.dumps(response).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port, seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def writes(folder: Path, port: int) -> NodeWrites:
    path = folder / "kubeconfig"
    path.write_text(
        "{apiVersion: v1, kind: Config, users: [{name: u, user: {}}], current-context: c,"
        f' clusters: [{{name: k, cluster: {{server: "http://127.0.0.1:{port}"}}}}],'
        " contexts: [{name: c, context: {cluster: k, user: u}}]}"
    )
    return NodeWrites(connect(str(path)))


@pytest.mark.parametrize(("cordoned", "word"), [(True, "cordoned"), (False, "uncordoned")])
def test_only_that_is_changed(tmp_path: Path, cordoned: bool, word: str) -> None:
    with api(200, {"kind": "Node"}) as (port, seen):
        assert writes(tmp_path, port).cordon("gpu/01", cordoned=cordoned) == WriteResult(WriteState.DONE, word)
    patch = {"spec": {"unschedulable": cordoned}}
    # An API server accepts a patch only with its media type.
    assert seen == [("PATCH", "/api/v1/nodes/gpu%2F01", "application/merge-patch+json", patch)]


@pytest.mark.parametrize(
    ("code", "state", "word"),
    [
        (404, WriteState.FAILED, "no-node"),
        (403, WriteState.FAILED, "forbidden"),
        (401, WriteState.FAILED, "forbidden"),
        (409, WriteState.LATER, "busy"),
        (429, WriteState.LATER, "busy"),
        (500, WriteState.FAILED, "failed"),
        (415, WriteState.FAILED, "failed"),
    ],
)
def test_what_an_answer_means(tmp_path: Path, code: int, state: WriteState, word: str) -> None:
    response = {"kind": "Status", "status": "Failure", "reason": "R", "message": "no", "code": code}
    with api(code, response) as (port, _):
        result = writes(tmp_path, port).cordon("gpu01", cordoned=True)
    assert (result.state, result.word) == (state, word)
    assert "no" in (result.message or "")


def test_nobody_answers(tmp_path: Path) -> None:
    result = writes(tmp_path, free_port()).cordon("gpu01", cordoned=True)
    assert (result.state, result.word) == (WriteState.FAILED, "lost")
