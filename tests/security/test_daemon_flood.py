"""Denial of service on the daemon's port by clients without credentials."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from monitor.facts.cluster import ClusterView
from monitor.web import forms
from monitor.web import server as web_server
from monitor.web.alerts_api import ApiTokens
from monitor.web.app import create_app
from monitor.web.server import WebServer, connection_limits
from tests.security.flood import (
    HEALTH_CHECK,
    OTHERS,
    Address,
    SlowClients,
    Target,
    connect,
    dripper,
    exchange,
    get,
    is_closed,
    is_cut_off,
    status_of,
    target,
)
from tests.support import wait_until
from tests.support.command import command, quiet_environment
from tests.support.fake_agents import FakeAgent, reports
from tests.web.test_alerts_api import FakeAlerts
from tests.web.test_app import FakeCluster

MIB = 1024 * 1024
DESCRIPTORS = 256
TOKENS = ApiTokens(callback="0123456789abcdef0123")


@pytest.fixture(scope="module")
def agent() -> Iterator[FakeAgent]:
    with FakeAgent(reports("n1")) as polled:
        yield polled


@pytest.fixture(scope="module")
def daemon(agent: FakeAgent, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A daemon with few descriptors that polls an agent."""
    folder = tmp_path_factory.mktemp("daemon")
    environ = quiet_environment(
        folder, DAEMON__AGENTS__STATIC=json.dumps([agent.target]), DAEMON__AGENTS__INTERVAL="200ms"
    )
    line = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh", *command("daemon")]
    with target(line, environ, folder, r"page on http://([\d.]+):(\d+)/") as running_daemon:
        yield running_daemon


@contextmanager
def serving(app: ASGIApp) -> Iterator[Address]:
    web = WebServer(app, socket.create_server(("127.0.0.1", 0)))
    web.start()
    try:
        yield web.address
    finally:
        web.begin_stop()
        web.wait_stopped()


# Connections


def wait_for_polls(agent: FakeAgent, count: int) -> None:
    wanted = len(agent.asked) + count
    wait_until(lambda: len(agent.asked) >= wanted, 10, "the agent is polled")


@pytest.mark.parametrize("sources", [("127.0.0.1",), OTHERS], ids=["one address", "many addresses"])
def test_idle_and_slow_clients_cost_neither_the_page_nor_polling(
    daemon: Target, agent: FakeAgent, sources: tuple[str, ...]
) -> None:
    before, peak = daemon.log_bytes(), daemon.peak_bytes()
    clients = SlowClients(daemon.address, DESCRIPTORS + 20, sources)
    try:
        for _ in range(2):
            clients.drip()
            assert get(daemon.address, "/healthz") == 200
            assert get(daemon.address, "/") == 200
            wait_for_polls(agent, 3)
    finally:
        clients.close()
    descriptors = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    assert descriptors < DESCRIPTORS
    assert daemon.log_bytes() - before < 20_000
    assert daemon.peak_bytes() - peak < 64 * MIB


@pytest.mark.parametrize(("descriptors", "total"), [(64, 16), (256, 64), (1024, 256), (65_536, 512)])
def test_most_descriptors_are_not_for_clients(descriptors: int, total: int) -> None:
    limits = connection_limits(descriptors)
    backlog = min(web_server.MAX_BACKLOG, limits.total)
    assert limits.total == total
    assert limits.per_client == total // 2
    assert limits.total + limits.reserved + backlog <= descriptors * 0.6


def test_the_last_connections_are_for_health_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "max_descriptors", lambda: 64)
    entered, released = threading.Semaphore(0), threading.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            entered.release()
            while not released.is_set():
                await asyncio.sleep(0.01)
        await Response("ok")(scope, receive, send)

    with serving(app) as address, ExitStack() as stack:
        stack.callback(released.set)
        for source in OTHERS[: connection_limits(64).total]:
            stack.enter_context(connect(address, source)).sendall(b"GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert entered.acquire(timeout=60)
        assert get(address, "/") == 503
        for _ in range(20):
            assert get(address, "/healthz") == 200


def test_idle_connections_do_not_displace_a_request_that_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is busy while a request and then more idle connections than a client may have arrive."""
    monkeypatch.setattr(web_server, "max_descriptors", lambda: 64)
    web = WebServer(Response("ok"), socket.create_server(("127.0.0.1", 0)))
    web.start()
    wait_until(lambda: web._server.started, 30, "the server listens")
    busy, released = threading.Event(), threading.Event()

    def occupy() -> None:
        busy.set()
        released.wait(60)

    with ExitStack() as stack:
        stack.callback(web.wait_stopped)
        stack.callback(web.begin_stop)
        stack.callback(released.set)
        web._server.servers[0].get_loop().call_soon_threadsafe(occupy)
        assert busy.wait(60)
        client = stack.enter_context(connect(web.address))
        client.sendall(HEALTH_CHECK)
        for _ in range(connection_limits(64).per_client + 2):
            stack.enter_context(connect(web.address))
        released.set()
        assert status_of(client.recv(4096)) == 200


class BlockedCluster(FakeCluster):
    """Never finishes the view until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()
        self.entered = threading.Semaphore(0)

    def view(self) -> ClusterView:
        self.entered.release()
        self.released.wait(60)
        return super().view()


def test_health_checks_need_no_worker_thread() -> None:
    """40 threads serve pages; requests that occupy all of them delay no health check."""
    cluster = BlockedCluster()
    with serving(create_app(cluster)) as address, ExitStack() as stack:
        stack.callback(cluster.released.set)
        for source in OTHERS:
            stack.enter_context(connect(address, source)).sendall(b"GET /v1/view HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert cluster.entered.acquire(timeout=60)
        assert get(address, "/healthz") == 200


# Time


def alertmanager_call(size: int) -> bytes:
    head = ("POST /v1/alertmanager HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {size}")
    return "\r\n".join((*head, f"Authorization: Bearer {TOKENS.callback}", "", "")).encode()


START = {
    "silence": b"",
    "a head": b"GET /healthz HTTP/1.1\r\nX-A: ",
    "a body": alertmanager_call(100_000),
    "the next request": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nX-A: ",
}


@pytest.mark.parametrize("start", START.values(), ids=list(START))
def test_a_request_has_a_deadline(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setattr(web_server, "PHASE_SECONDS", 1.0)
    with serving(create_app(FakeCluster(), alerts=FakeAlerts(), tokens=TOKENS)) as address, connect(address) as client:
        client.sendall(start)
        assert is_cut_off(dripper(client) if start else lambda: b"" if is_closed(client) else None)


async def large_response(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(b"a" * 16 * MIB)(scope, receive, send)


def test_a_response_has_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "PHASE_SECONDS", 1.0)
    with serving(large_response) as address, connect(address) as client:
        client.sendall(HEALTH_CHECK)
        assert client.recv(4096)

        def step() -> bytes | None:
            client.recv(4096)
            return b"" if not established_with(client) else None

        assert is_cut_off(step)


def established_with(client: socket.socket) -> bool:
    """Whether the server's end of a connection is open, according to the kernel."""
    address, port = client.getsockname()
    remote = f"{''.join(f'{int(part):02X}' for part in reversed(address.split('.')))}:{port:04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return any(row[2] == remote and row[3] == "01" for row in rows)


# Memory


def test_responses_that_are_not_read_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "MAX_UNSENT_BYTES", 32 * MIB)
    monkeypatch.setattr(web_server, "PHASE_SECONDS", 600.0)
    with serving(large_response) as address, ExitStack() as stack:
        clients = [stack.enter_context(connect(address)) for _ in range(8)]
        for client in clients:
            client.sendall(HEALTH_CHECK)
        wait_until(lambda: sum(map(established_with, clients)) <= 4, 30, "half of the clients are disconnected")
        assert get(address, "/healthz") == 200


def test_bodies_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MAX_BODIES_BYTES", MIB)
    app = create_app(FakeCluster(), alerts=FakeAlerts(), tokens=TOKENS)
    with serving(app) as address, connect(address) as client:
        client.sendall(alertmanager_call(MIB) + b" " * (MIB * 3 // 4))
        wait_until(lambda: forms.BODY_MEMORY._bytes == MIB * 3 // 4, 30, "the first body is in memory")
        other = alertmanager_call(MIB // 2) + b" " * (MIB // 2)
        assert status_of(exchange(address, other)) in (0, 503)  # without a response if it is still being sent
        wait_until(lambda: forms.BODY_MEMORY._bytes == MIB * 3 // 4, 30, "the other one is gone")
        client.sendall(b" " * (MIB // 4))
        assert status_of(client.recv(4096)) == 200
        wait_until(lambda: status_of(exchange(address, other)) == 200, 30, "its memory is free")


def test_heads_are_limited() -> None:
    with serving(create_app(FakeCluster())) as address:
        long = HEALTH_CHECK.replace(b"Host: localhost", b"Host: localhost\r\nX-A: " + b"a" * 100_000)
        assert status_of(exchange(address, long)) in (0, 400, 431)
        assert (
            status_of(
                exchange(address, HEALTH_CHECK.replace(b"Host: localhost", b"Host: localhost" + b"\r\nX-A: a" * 200))
            )
            == 431
        )


# Framing and logs


def test_content_length_with_transfer_encoding_is_refused_and_the_connection_closed() -> None:
    with serving(create_app(FakeCluster())) as address:
        head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
        response = exchange(address, head + b"0\r\n\r\n" + HEALTH_CHECK)
        assert (status_of(response), response.count(b"HTTP/1.1 ")) == (400, 1)


def test_malformed_requests_do_not_fill_the_disk(daemon: Target) -> None:
    before = daemon.log_bytes()
    for _ in range(500):
        with contextlib.suppress(OSError), connect(daemon.address) as client:
            client.sendall(b"\x00\r\n\r\n")
            client.recv(4096)
    assert get(daemon.address, "/healthz") == 200
    assert "Invalid HTTP request" in daemon.log.read_text()
    assert daemon.log_bytes() - before < 20_000
