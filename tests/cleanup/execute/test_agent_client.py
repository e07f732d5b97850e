"""Asking agents to act: what is believed, what is not, and that it ends in time."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.base.peer_http import PeerTls
from monitor.base.signing import RequestSignature, RequestSigner, RequestVerifier, generate_keys
from monitor.cleanup.execute import agent_client
from monitor.cleanup.execute.agent_client import Access, ActionClient, AgentRefusesError, AgentSilentError, AgentTarget
from monitor.facts.actions import ActionFact, ActionRequest, ActionState
from tests.cleanup.support import remove
from tests.support import free_port
from tests.support.certificates import authority

KEYS = generate_keys()
Reply = tuple[int, dict[str, str], bytes]


def fact(state: str = "done", **more: Any) -> bytes:
    return msgspec.json.encode(
        ActionFact(id="act-1", kind="remove-image", state=ActionState(state), started_at=1.0, **more)
    )


def request() -> ActionRequest:
    return ActionRequest(id="act-1", issued_at=1.0, expires_at=2.0, policy="p", plan="r", action=remove())


@contextmanager
def agent(
    *replies: Reply, tls: Any = None
) -> Iterator[tuple[AgentTarget, list[tuple[str, str, dict[str, str], bytes]]]]:
    """An agent that gives these replies one after the other, the last one again and again; and what it was asked."""
    left, seen = list(replies), list[tuple[str, str, dict[str, str], bytes]]()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            seen.append((self.command, self.path, dict(self.headers), body))
            status, headers, answer = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = handle_any

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield AgentTarget("gpu-01", f"127.0.0.1:{server.server_port}"), seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def client(limit: float = 60.0, stopping: threading.Event | None = None, **more: Any) -> ActionClient:
    return ActionClient(Access(RequestSigner(KEYS.private), limit, **more), stopping or threading.Event())


def test_what_is_sent_and_what_comes_back() -> None:
    with agent((202, {}, fact("running")), (200, {}, fact(outcome="removed", freed_bytes=7))) as (target, seen):
        begun = client().submit(target, request())
        done = client().finish(target, begun, 60)
    assert (done.outcome, done.freed_bytes) == ("removed", 7)
    assert [each[:2] for each in seen] == [("POST", "/v1/actions"), ("GET", "/v1/actions/act-1")]
    assert msgspec.json.decode(seen[0][3], type=ActionRequest) == request()
    verifier = RequestVerifier("gpu-01", KEYS.public)
    for method, path, headers, body in seen:
        signature = RequestSignature.parse(headers["Authorization"])
        assert signature is not None
        assert verifier.verify(signature, method, path, body)


REFUSALS: list[tuple[int, str, float | None]] = [
    (401, "signature", None), (421, "node", None), (403, "disabled", None), (409, "replayed", None),
    (410, "expired", None), (429, "too-many", 7.0), (400, "malformed", None), (503, "failed", None),
    (599, "failed", None),
]  # fmt: skip


@pytest.mark.parametrize(("status", "word", "after"), REFUSALS)
def test_refusals(status: int, word: str, after: float | None) -> None:
    headers = {"Retry-After": "7"} if after else {}
    with (
        agent((status, headers, b'{"error":"because"}')) as (target, _),
        pytest.raises(AgentRefusesError, match=f"answered {status}: because") as caught,
    ):
        client().submit(target, request())
    assert (caught.value.word, caught.value.retry_after) == (word, after)


def test_an_action_that_nobody_remembers() -> None:
    with agent((404, {}, b"{}")) as (target, _):
        assert client().ask(target, "act-1") is None
        with pytest.raises(AgentRefusesError, match="a version that acts"):
            client().submit(target, request())


@pytest.mark.parametrize(
    ("name", "reply"),
    [("no JSON", (200, {}, b"<html>")), ("another thing", (200, {}, b'{"id":1}')), ("bad text", (200, {}, b'"\xff"'))],
)
def test_what_cannot_be_believed(name: str, reply: Reply) -> None:
    with agent(reply) as (target, _), pytest.raises(AgentSilentError, match="something else"):
        client().ask(target, "act-1")


def test_nobody_there() -> None:
    with pytest.raises(AgentSilentError, match="Connection refused"):
        client().ask(AgentTarget("gpu-01", f"127.0.0.1:{free_port()}"), "act-1")


def stay_silent(_connection: socket.socket, ended: threading.Event) -> None:
    ended.wait(120)


def trickle(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not ended.wait(0.05):
        connection.sendall(b" ")


@pytest.mark.parametrize("behave", [stay_silent, trickle])
def test_the_limit_is_on_the_whole(behave: Callable[[socket.socket, threading.Event], None]) -> None:
    ended = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, suppress(OSError):
            behave(connection, ended)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        began = time.monotonic()
        with pytest.raises(AgentSilentError, match=r"no complete answer within 0\.3 s"):
            client(0.3).ask(AgentTarget("gpu-01", f"127.0.0.1:{listening.getsockname()[1]}"), "act-1")
        assert time.monotonic() - began < 30
        ended.set()
        thread.join(60)


def test_waiting_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    running = ActionFact(id="act-1", kind="x", state=ActionState.RUNNING, started_at=1.0)
    looks: list[dict[str, int]] = []
    with agent((200, {}, fact("running", progress={"entries": 5}))) as (target, _):
        with pytest.raises(AgentSilentError, match="not over within"):
            client().finish(target, running, 0.3, lambda one: looks.append(one.progress))
        assert looks[-1] == {"entries": 5}
        stopping = threading.Event()
        stopping.set()
        with pytest.raises(AgentSilentError, match="being stopped"):
            client(stopping=stopping).finish(target, running, 60)
    with agent((404, {}, b"{}")) as (target, _), pytest.raises(AgentSilentError, match="does not remember"):
        client().finish(target, running, 60)
    monkeypatch.setattr(agent_client, "MAX_SILENCE_SECONDS", 0.2)
    with pytest.raises(AgentSilentError, match="refused"):
        client().finish(AgentTarget("gpu-01", f"127.0.0.1:{free_port()}"), running, 60)


def test_tls_and_whom_it_trusts(tmp_path: Path) -> None:
    ours, foreign = authority(tmp_path / "ours"), authority(tmp_path / "foreign")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*ours.sign("agent", "DNS:gpuwarden-agent"))
    server.load_verify_locations(ours.ca_file)
    server.verify_mode = ssl.CERT_REQUIRED
    mine = ours.sign("daemon", "DNS:daemon")
    with agent((200, {}, fact(outcome="gone")), tls=server) as (target, _):
        found = client(tls=PeerTls(ours.ca_file, *mine, "gpuwarden-agent")).ask(target, "act-1")
        assert found is not None
        assert found.outcome == "gone"
        for wrong in (
            PeerTls(foreign.ca_file, *mine, "gpuwarden-agent"),
            PeerTls(ours.ca_file, None, None, "gpuwarden-agent"),
            PeerTls(ours.ca_file, *foreign.sign("daemon", "DNS:daemon"), "gpuwarden-agent"),
            PeerTls(ours.ca_file, *mine, "another"),
        ):
            with pytest.raises(AgentSilentError):
                client(tls=wrong).ask(target, "act-1")


def test_no_secret_in_a_repr() -> None:
    assert KEYS.private not in repr(Access(RequestSigner(KEYS.private))) + repr(KEYS)
