"""The agent's HTTP server, over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import msgspec
import pytest
import requests

from monitor.agent import server as agent_server
from monitor.agent.routes import ActionsDisabled
from monitor.agent.server import LIMITS, AgentServer
from monitor.facts import NodeSnapshot
from monitor.facts.actions import ActionsFact
from tests.support import wait_until
from tests.support.snapshots import full_snapshot

TOKEN = "s3cret-träger"


@pytest.fixture
def server() -> Iterator[AgentServer]:
    yield from _serve(None)


@pytest.fixture
def guarded() -> Iterator[AgentServer]:
    yield from _serve(TOKEN)


def _serve(token: str | None) -> Iterator[AgentServer]:
    server = AgentServer("127.0.0.1", 0, token, full_snapshot)
    server.start()
    yield server
    server.stop()


def get(server: AgentServer, path: str, **headers: str) -> requests.Response:
    host, port = server.address
    return requests.get(f"http://{host}:{port}{path}", headers=headers, timeout=60)


def responds(server: AgentServer) -> bool:
    try:
        return get(server, "/healthz").status_code == 200
    except requests.ConnectionError:
        return False


def test_the_snapshot_comes_back_as_it_was(server: AgentServer) -> None:
    reply = get(server, "/v1/snapshot")
    assert reply.headers["Content-Type"] == "application/json"
    assert msgspec.json.decode(reply.content, type=NodeSnapshot) == full_snapshot()


def test_metrics_have_the_content_type_prometheus_asks_for(server: AgentServer) -> None:
    reply = get(server, "/metrics")
    assert reply.status_code == 200
    assert reply.headers["Content-Type"].startswith("text/plain; version=")
    assert b"gpuwarden_gpu_utilization_ratio" in reply.content


def test_health_names_what_hangs_and_is_well_all_the_same(server: AgentServer) -> None:
    reply = get(server, "/healthz")
    assert (reply.status_code, list(reply.json()["hung"])) == (200, ["images"])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/etc/passwd", 404), ("GET", "/metrics?x=1", 200), ("POST", "/metrics", 405)],
)
def test_nothing_else_is_served(server: AgentServer, method: str, path: str, status: int) -> None:
    host, port = server.address
    assert requests.request(method, f"http://{host}:{port}{path}", timeout=60).status_code == status


@pytest.mark.parametrize(
    ("path", "authorization", "status"),
    [
        ("/metrics", "", 401),
        ("/v1/snapshot", "", 401),
        ("/v1/snapshot", "Bearer wrong", 401),
        ("/v1/snapshot", f"Basic {TOKEN}", 401),
        ("/v1/snapshot", f"Bearer {TOKEN}", 200),
        ("/metrics", f"bearer {TOKEN}", 200),
        ("/healthz", "", 200),
    ],
)
def test_the_token_is_asked_for(guarded: AgentServer, path: str, authorization: str, status: int) -> None:
    headers = {"Authorization": authorization.encode()} if authorization else {}
    host, port = guarded.address
    reply = requests.get(f"http://{host}:{port}{path}", headers=headers, timeout=60)
    assert reply.status_code == status
    assert TOKEN not in reply.text


def test_silent_clients_do_not_keep_others_out_for_long(server: AgentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections over the limit are closed immediately, and the number of threads stays bounded."""
    monkeypatch.setattr(agent_server, "REQUEST_SECONDS", 600.0)  # no connection is closed for being slow
    before = threading.active_count()
    idle = [socket.create_connection(server.address) for _ in range(LIMITS.total + 10)]
    wait_until(lambda: sum(map(_is_closed, idle)) >= 10, 30, "the connections over the limit are closed")
    assert threading.active_count() <= before + LIMITS.total + LIMITS.reserved
    for connection in idle:
        connection.close()
    wait_until(lambda: responds(server), 30, "the server has free connections again")


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_a_second_server_on_the_port_is_refused(server: AgentServer) -> None:
    with pytest.raises(OSError, match="in use"):
        AgentServer(*server.address, None, full_snapshot)


@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("GET", "/a1"), ("POST", "/a1/stop")])
def test_actions_are_refused_unless_they_are_enabled(server: AgentServer, method: str, path: str) -> None:
    host, port = server.address
    url = f"http://{host}:{port}/v1/actions{path}"
    reply = requests.request(method, url, data=b"{}", headers={"Authorization": "Bearer x"}, timeout=60)
    assert (reply.status_code, reply.json()) == (403, {"error": "disabled: set agent.actions.enabled"})


def test_what_is_asked_of_an_agent_that_does_not_act_is_counted() -> None:
    disabled = ActionsDisabled()
    assert disabled.fact() == ActionsFact(enabled=False)
    for _ in range(3):
        disabled.answer("POST", "/v1/actions", "", "127.0.0.1", b"")
    assert (disabled.fact().enabled, disabled.fact().refused) == (False, {"disabled": 3})
    assert disabled.fact().refused_at is not None
