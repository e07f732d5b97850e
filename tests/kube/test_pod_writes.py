"""Evictions and deletions: requests sent, and meaning of the responses, as worded by Kubernetes 1.20."""

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
from monitor.kube.pod_writes import PodState, PodWrites, WriteResult, WriteState
from tests.support import free_port

OK = (200, {"kind": "Status", "status": "Success"})
V1_30 = {"resources": [{"name": "pods"}, {"name": "pods/eviction", "group": "policy", "version": "v1"}]}
V1_20 = {"resources": [{"name": "pods/eviction", "group": "policy", "version": "v1beta1"}]}
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
ANOTHER = (
    'Operation cannot be fulfilled on Pod "a": the UID in the precondition (u1) does not match the UID in record (u2). '
    "The object might have been deleted and then recreated"
)


def status(code: int, reason: str, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}


@contextmanager
def api(
    tmp_path: Path, answers: dict[tuple[str, str], tuple[int, dict[str, Any]]]
) -> Iterator[tuple[PodWrites, list[tuple[str, str, Any]]]]:
    """An API server with responses by method and path, and the writes it received."""
    seen: list[tuple[str, str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command != "GET":
                assert self.headers["Content-Type"] == "application/json"
                seen.append((self.command, self.path, json.loads(body)))
            missing = status(404, "NotFound", "the server could not find the requested resource")
            code, response = answers.get((self.command, self.path.partition("?")[0]), missing)
            answer = json.dumps(response).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(answer)))
            if code == 429:
                self.send_header("Retry-After", "10")
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_DELETE = handle_any

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield PodWrites(connect(kubeconfig(tmp_path, server.server_port))), seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def kubeconfig(folder: Path, port: int) -> str:
    path = folder / "kubeconfig"
    path.write_text(
        "{apiVersion: v1, kind: Config, users: [{name: u, user: {}}], current-context: c,"
        f' clusters: [{{name: k, cluster: {{server: "http://127.0.0.1:{port}"}}}}],'
        " contexts: [{name: c, context: {cluster: k, user: u}}]}"
    )
    return str(path)


POD = "/api/v1/namespaces/team/pods/bert-0"


@pytest.mark.parametrize(
    ("name", "discovery", "version"),
    [
        ("1.30", {("GET", "/api/v1"): (200, V1_30)}, "policy/v1"),
        ("1.20", {("GET", "/api/v1"): (200, V1_20)}, "policy/v1beta1"),
        ("only the group is served", {("GET", "/apis/policy"): (200, {"versions": [{"version": "v1"}]})}, "policy/v1"),
        (
            "an old group",
            {("GET", "/api/v1"): (403, {}), ("GET", "/apis/policy"): (200, {"versions": [{"version": "v1beta1"}]})},
            "policy/v1beta1",
        ),
    ],
)
def test_an_eviction_is_written_as_the_server_reads_it(
    tmp_path: Path, name: str, discovery: dict[tuple[str, str], Any], version: str
) -> None:
    with api(tmp_path, {**discovery, ("POST", f"{POD}/eviction"): (201, OK[1])}) as (pods, seen):
        assert pods.evict("team", "bert-0", "u1") == WriteResult(WriteState.DONE, "evicted")
    assert seen == [
        (
            "POST",
            f"{POD}/eviction",
            {
                "apiVersion": version,
                "kind": "Eviction",
                "metadata": {"namespace": "team", "name": "bert-0"},
                "deleteOptions": {"preconditions": {"uid": "u1"}},
            },
        )
    ]


@pytest.mark.parametrize(("force", "grace", "word"), [(False, None, "deleted"), (True, 0, "forced")])
def test_a_deletion_names_the_pod_that_is_meant(tmp_path: Path, force: bool, grace: int | None, word: str) -> None:
    with api(tmp_path, {("DELETE", POD): OK}) as (pods, seen):
        assert pods.delete("team", "bert-0", "u1", force=force) == WriteResult(WriteState.DONE, word)
    assert seen[0][2]["preconditions"] == {"uid": "u1"}
    assert seen[0][2].get("gracePeriodSeconds") == grace


ANSWERS: list[tuple[str, tuple[int, dict[str, Any]], WriteState, str]] = [
    ("gone already", status(404, "NotFound", 'pods "bert-0" not found'), WriteState.DONE, "gone"),
    ("another pod of that name", status(409, "Conflict", ANOTHER), WriteState.REFUSED, "changed"),
    ("a disruption budget", status(429, "TooManyRequests", BUDGET), WriteState.LATER, "budget"),
    ("an overloaded server", status(429, "TooManyRequests", "too many requests"), WriteState.LATER, "busy"),
    ("not allowed", status(403, "Forbidden", "cannot create pods/eviction"), WriteState.FAILED, "forbidden"),
    ("two budgets", status(500, "InternalError", "more than one PodDisruptionBudget"), WriteState.FAILED, "failed"),
]


@pytest.mark.parametrize(("answer", "state", "word"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_what_answers_mean(tmp_path: Path, answer: tuple[int, dict[str, Any]], state: WriteState, word: str) -> None:
    known = {("GET", "/api/v1"): (200, V1_30), ("POST", f"{POD}/eviction"): answer, ("DELETE", POD): answer}
    with api(tmp_path, known) as (pods, _):
        evicted, deleted = pods.evict("team", "bert-0", "u1"), pods.delete("team", "bert-0", "u1")
    assert [(result.state, result.word) for result in (evicted, deleted)] == [(state, word)] * 2
    assert evicted.retry_after == (10.0 if answer[0] == 429 else None)
    if answer[0] != 500:
        assert evicted.message == answer[1]["message"]


def test_nobody_there(tmp_path: Path) -> None:
    pods = PodWrites(connect(kubeconfig(tmp_path, free_port())))
    assert pods.evict("team", "bert-0", "u1").state is WriteState.FAILED
    assert pods.delete("team", "bert-0", "u1").word == "lost"


def test_looking_at_a_pod(tmp_path: Path) -> None:
    pod: dict[str, Any] = {"metadata": {"uid": "u1", "deletionTimestamp": "2025-01-01T00:00:00Z"}}
    with api(tmp_path, {("GET", POD): (200, pod)}) as (pods, seen):
        assert pods.look("team", "bert-0") == PodState("u1", deleting=True)
        assert pods.look("team", "other") is None
        assert seen == []


def test_a_name_cannot_lead_elsewhere(tmp_path: Path) -> None:
    with api(tmp_path, {}) as (pods, seen):
        pods.delete("team/../kube-system", "a/b?c", "u1")
    assert seen[0][1] == "/api/v1/namespaces/team%2F..%2Fkube-system/pods/a%2Fb%3Fc"
