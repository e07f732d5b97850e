"""Connections that stay open between requests, over real sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from monitor.base.peer_http import PeerClient, PeerError
from tests.support import wait_until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Talk = Callable[[socket.socket, int], None]  # serves a connection; the number counts earlier ones


class Peer:
    """A server with one thread per connection."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._server = socket.create_server(("127.0.0.1", 0))
        self.target = "{}:{}".format(*self._server.getsockname())
        self.connections: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.connections.append(connection)
            arguments = (connection, len(self.connections) - 1)
            threading.Thread(target=self._serve_one, args=arguments, daemon=True).start()

    def _serve_one(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError):  # the test is over
            self._talk(connection, number)

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self.connections:
            connection.close()


def answers(reply: bytes = OK, times: int = 1000) -> Talk:
    """Send a reply to each request, and close the connection after this many."""

    def talk(connection: socket.socket, _number: int) -> None:
        for _ in range(times):
            if not connection.recv(65536):
                return
            connection.sendall(reply)
        connection.close()

    return talk


def falls_silent(connection: socket.socket, number: int) -> None:
    """Answer the first request of the first connection only."""
    if number == 0:
        answers(OK, 1)(connection, number)


@pytest.fixture
def served() -> Iterator[Callable[[Talk], Peer]]:
    peers: list[Peer] = []

    def serve(talk: Talk) -> Peer:
        peers.append(Peer(talk))
        return peers[-1]

    yield serve
    for peer in peers:
        peer.close()


@pytest.fixture
def keeper() -> Iterator[PeerClient]:
    client = PeerClient(5.0, 1000, idle_seconds=60, max_idle=2)
    yield client
    client.close()


Serve = Callable[[Talk], Peer]


def test_requests_share_a_connection(served: Serve, keeper: PeerClient) -> None:
    peer = served(answers())
    for _ in range(5):
        assert keeper.request(peer.target, "GET", "/").body == b"{}"
    assert len(peer.connections) == 1


def test_unless_the_client_keeps_none(served: Serve) -> None:
    peer, client = served(answers()), PeerClient(5.0, 1000)
    for _ in range(2):
        client.request(peer.target, "GET", "/")
    assert len(peer.connections) == 2
    client.close()


@pytest.mark.parametrize(
    "reply",
    [
        OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        OK + b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
    ids=["closes", "sends more", "in chunks"],
)
def test_or_the_reply_leaves_doubt(served: Serve, keeper: PeerClient, reply: bytes) -> None:
    peer = served(answers(reply))
    for _ in range(2):
        assert keeper.request(peer.target, "GET", "/").body == b"{}"
    assert len(peer.connections) == 2


def test_a_peer_may_close_a_connection_at_any_time(served: Serve, keeper: PeerClient) -> None:
    peer = served(answers(OK, 1))
    for _ in range(5):
        assert keeper.request(peer.target, "GET", "/").body == b"{}"
    assert len(peer.connections) == 5


def test_one_deadline_covers_both_attempts(served: Serve) -> None:
    peer, client = served(falls_silent), PeerClient(1.0, 1000, idle_seconds=60, max_idle=1)
    client.request(peer.target, "GET", "/")
    wait_until(lambda: peer.connections[0].fileno() < 0, 5, "the peer has closed the connection")
    with pytest.raises(PeerError, match="no complete answer within 1 s"):
        client.request(peer.target, "GET", "/")
    assert len(peer.connections) == 2
    client.close()


def test_idle_connections_are_few_and_do_not_stay(served: Serve, keeper: PeerClient) -> None:
    peers = [served(answers()) for _ in range(3)]
    for peer in peers * 2:
        keeper.request(peer.target, "GET", "/")
    assert [len(peer.connections) for peer in peers] == [1, 1, 2]
    assert len(keeper._open) == len(keeper._idle) == 2
    keeper._idle_seconds = 0.0
    keeper.request(peers[2].target, "GET", "/")
    assert list(keeper._idle) == [peers[2].target]
    assert len(keeper._open) == 1


def test_closing_closes_idle_connections(served: Serve, keeper: PeerClient) -> None:
    peer = served(answers())
    keeper.request(peer.target, "GET", "/")
    keeper.close()
    assert (keeper._open, keeper._idle) == (set(), {})
    with pytest.raises(PeerError, match="stopping"):
        keeper.request(peer.target, "GET", "/")
