"""Denial of service on the agent's port by clients without a token."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http import HTTPStatus
from types import SimpleNamespace

import msgspec
import pytest

from monitor.agent import server as agent_server
from monitor.agent.routes import ActionsDisabled
from monitor.agent.server import LIMITS, AgentServer
from monitor.agent.settings import TlsSettings
from monitor.facts import NodeSnapshot
from tests.security.flood import (
    HEALTH_CHECK,
    OTHERS,
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
from tests.support.action_keys import write_keys
from tests.support.certificates import authority
from tests.support.command import command, quiet_environment
from tests.support.snapshots import full_snapshot

MIB = 1024 * 1024


def post(*headers: str) -> bytes:
    return "\r\n".join(("POST /v1/actions HTTP/1.1", "Host: localhost", *headers, "", "")).encode()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("agent")
    environ = quiet_environment(folder, AGENT__ACTIONS=write_keys(folder / "keys").agent_actions())
    with target(command("agent"), environ, folder, r"listening on ([\d.]+):(\d+)") as running_agent:
        yield running_agent


@pytest.fixture
def server() -> Iterator[AgentServer]:
    yield from serve()


def serve(
    snapshot: Callable[[], NodeSnapshot] = full_snapshot,
    actions: ActionsDisabled | None = None,
    tls: TlsSettings | None = None,
) -> Iterator[AgentServer]:
    running = AgentServer("127.0.0.1", 0, None, snapshot, actions, tls)
    running.start()
    yield running
    running.stop()


# Memory


def test_a_padded_content_length_is_refused_before_the_body_is_read(agent: Target) -> None:
    before = agent.peak_bytes()
    for _ in range(3):
        with connect(agent.address) as client:
            client.settimeout(10)
            client.sendall(post("Content-Length: 000000000000125829121"))
            assert client.recv(12) == b"HTTP/1.1 400"
            with contextlib.suppress(OSError):
                client.sendall(b" " * 16 * MIB)
    assert agent.peak_bytes() - before < 16 * MIB
    assert get(agent.address, "/healthz") == 200


def test_large_bodies_of_many_clients_are_not_in_memory_at_once(agent: Target) -> None:
    before, size = agent.peak_bytes(), 4 * MIB
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(agent.address, source)) for source in OTHERS[:16]]
        unsent = dict.fromkeys(clients, memoryview(b" " * (size - 1)))
        for client in clients:
            client.sendall(post(f"Content-Length: {size}"))
            client.setblocking(False)

        def all_sent_or_refused() -> bool:
            for client, rest in list(unsent.items()):
                try:
                    unsent[client] = rest = rest[client.send(rest) :]
                except BlockingIOError:
                    continue
                except OSError:
                    rest = memoryview(b"")
                if not rest:
                    del unsent[client]
            return not unsent

        wait_until(all_sent_or_refused, 30, "every client has sent its body or is refused")
        wait_until(lambda: sum(map(is_closed, clients)) >= len(clients) - 2, 30, "all but two are refused")
        assert agent.peak_bytes() - before < 32 * MIB
        assert get(agent.address, "/healthz") == 200


def test_headers_are_limited_in_number_and_size(server: AgentServer) -> None:
    line = f"GET {'/healthz'} HTTP/1.1"
    for headers in ((f"X-A: {'a' * 10_000}",) * 20, ("X-A: a",) * 200):
        request = "\r\n".join((line, "Host: localhost", "Connection: close", *headers, "", "")).encode()
        assert status_of(exchange(server.address, request)) in (0, 431)


# Framing


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked",),
        ("Transfer-Encoding: identity", "Content-Length: 2"),
        ("Content-Length: 2", "Content-Length: 3"),
        ("Content-Length: +2",),
        ("Content-Length: 2, 2",),
        ("Content-Length: \xb2",),
        ("Content-Length : 2",),
        ("Content-Length: 2", "Transfer-Encoding : chunked"),
        ("Content-Length: 2", "no header", "Transfer-Encoding: chunked"),
    ],
)
def test_a_request_whose_end_is_in_doubt_is_refused_and_the_connection_closed(
    server: AgentServer, headers: tuple[str, ...]
) -> None:
    request = "\r\n".join(("POST /v1/actions HTTP/1.1", "Host: localhost", *headers, "", "")).encode("latin-1")
    response = exchange(server.address, request + b"{}" + HEALTH_CHECK)
    assert (status_of(response), response.count(b"HTTP/1.1 ")) == (400, 1)


def test_what_follows_an_unread_body_is_not_a_request(server: AgentServer) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(HEALTH_CHECK)
    assert exchange(server.address, request + HEALTH_CHECK).count(b"HTTP/1.1 ") == 1


# Time


@pytest.mark.parametrize("sources", [("127.0.0.1",), OTHERS], ids=["one address", "many addresses"])
def test_slow_clients_do_not_keep_health_checks_out(agent: Target, sources: tuple[str, ...]) -> None:
    clients = SlowClients(agent.address, LIMITS.total + LIMITS.reserved, sources)
    try:
        for _ in range(5):
            clients.drip()
            assert get(agent.address, "/healthz") == 200
            assert get(agent.address, "/v1/snapshot") == 200
    finally:
        clients.close()


START = {
    "a head": b"GET /healthz HTTP/1.1\r\nX-A: ",
    "a body": post("Content-Length: 100000"),
    "the next request": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nX-A: ",
}


@pytest.mark.parametrize("start", START.values(), ids=list(START))
def test_a_request_has_one_deadline(server: AgentServer, monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setattr(agent_server, "REQUEST_SECONDS", 1.0)
    with connect(server.address) as client:
        client.sendall(start)
        assert is_cut_off(dripper(client))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> TlsSettings:
    cert_file, key_file = authority(tmp_path_factory.mktemp("tls") / "ca").sign("agent", "DNS:agent")
    return TlsSettings(cert_file=cert_file, key_file=key_file, client_ca_file=None)


def test_a_handshake_has_one_deadline(certificate: TlsSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_server, "HANDSHAKE_SECONDS", 1.0)
    for server in serve(tls=certificate):
        with connect(server.address) as client:
            client.sendall(b"\x16\x03\x01\x20\x00")  # the header of a record of 8 KiB
            assert is_cut_off(dripper(client))


def test_a_response_has_one_deadline(certificate: TlsSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reads a little all the time does not keep its connection."""
    monkeypatch.setattr(agent_server, "RESPONSE_SECONDS", 1.0)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    large = msgspec.structs.replace(full_snapshot(), node="a" * 32 * MIB)
    for server in serve(lambda: large, tls=certificate):
        with context.wrap_socket(connect(server.address)) as client:
            client.sendall(HEALTH_CHECK.replace(b"/healthz", b"/v1/snapshot"))
            assert status_of(client.recv(4096)) == 200
            assert is_cut_off(lambda: client.recv(4096) if connection_threads() else b"")


def connection_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "process_request_thread" in thread.name]


# Connections


def test_one_address_does_not_displace_others(server: AgentServer) -> None:
    with ExitStack() as stack:
        first = http.client.HTTPConnection(*server.address, timeout=30)
        stack.callback(first.close)
        first.request("GET", "/healthz")
        first.getresponse().read()
        for _ in range(2 * LIMITS.total):
            stack.enter_context(connect(server.address, "127.0.0.2"))
        assert get(server.address, "/healthz", "127.0.0.3") == 200
        assert first.sock is not None
        assert not is_closed(first.sock)
        first.sock.settimeout(30)
        first.request("GET", "/healthz")
        assert first.getresponse().status == 200


def test_the_number_of_connections_is_bounded(server: AgentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_server, "REQUEST_SECONDS", 600.0)
    with ExitStack() as stack:
        clients = [stack.enter_context(connect(server.address, source)) for source in OTHERS * 3]
        bound = LIMITS.total + LIMITS.reserved
        wait_until(lambda: sum(not is_closed(client) for client in clients) <= bound, 30, "the rest is disconnected")
        wait_until(lambda: len(connection_threads()) <= bound, 30, "threads have ended")


class BlockingActions(ActionsDisabled):
    """Keeps every request for an action busy until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Semaphore(0)
        self.released = threading.Event()

    def answer(
        self, _method: str, _path: str, _authorization: str, _peer: str, _body: bytes
    ) -> tuple[HTTPStatus, bytes, float | None]:
        self.entered.release()
        self.released.wait(60)
        return HTTPStatus.OK, b"{}", None


def test_the_last_connections_are_for_health_checks() -> None:
    actions = BlockingActions()
    for server in serve(actions=actions):
        with ExitStack() as stack:
            stack.callback(actions.released.set)
            for source in OTHERS[: LIMITS.total]:
                stack.enter_context(connect(server.address, source)).sendall(b"GET /v1/actions/a HTTP/1.1\r\n\r\n")
                assert actions.entered.acquire(timeout=60)
            assert get(server.address, "/metrics") == 503
            for _ in range(3 * LIMITS.reserved):
                assert get(server.address, "/healthz") == 200


def test_large_bodies_that_wait_for_their_turn_do_not_use_up_the_threads(
    server: AgentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_server, "LARGE_BODY_WAIT_SECONDS", 600.0)
    monkeypatch.setattr(agent_server, "REQUEST_SECONDS", 600.0)
    bodies = server._server.large_bodies
    with ExitStack() as stack:
        for source in (*OTHERS[:2], *(OTHERS[2:4] * 32)):  # two have their turn, which the others do not interrupt
            taken = len(bodies._clients) + len(bodies._waiting)
            client = stack.enter_context(connect(server.address, source))
            with contextlib.suppress(OSError):
                client.sendall(post(f"Content-Length: {4 * MIB}"))
            wait_until(
                lambda client=client, taken=taken: (  # type: ignore[misc]
                    is_closed(client) or len(bodies._clients) + len(bodies._waiting) > taken
                ),
                30,
                "the body waits for its turn, or is refused",
            )
        for _ in range(3):
            assert get(server.address, "/healthz") == 200


def test_running_out_of_descriptors_neither_ends_nor_spins_the_server(
    server: AgentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []
    real = socket.socket.accept

    def accept(self: socket.socket) -> tuple[socket.socket, object]:
        calls.append(0.0)
        if len(calls) < 3:
            raise OSError(24, "Too many open files")
        return real(self)

    pauses: list[float] = []
    monkeypatch.setattr(socket.socket, "accept", accept)
    monkeypatch.setattr(agent_server, "time", SimpleNamespace(sleep=pauses.append))
    assert get(server.address, "/healthz") == 200
    assert pauses == [agent_server.ACCEPT_RETRY_SECONDS] * 2


# Logs


def test_refused_requests_do_not_fill_the_disk(agent: Target) -> None:
    before = agent.log_bytes()
    client = http.client.HTTPConnection(*agent.address, timeout=30)
    with contextlib.closing(client):
        for _ in range(500):
            client.request("GET", f"/v1/actions/{'a' * 10_000}")
            assert client.getresponse().read()
    assert get(agent.address, "/healthz") == 200
    assert "refused GET" in agent.log.read_text()
    assert agent.log_bytes() - before < MIB // 2
