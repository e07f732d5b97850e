"""Responses in one piece, without waiting for the client where they are small."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest

from monitor.agent.http_io import MAX_SMALL_RESPONSE_BYTES, ResponseWriter, SocketDeadline


def received(client: socket.socket) -> bytes:
    client.setblocking(False)
    try:
        return client.recv(65536)
    except BlockingIOError:
        return b""


def test_a_small_response_is_sent_in_one_piece() -> None:
    ours, client = socket.socketpair()
    with ours, client:
        writer = ResponseWriter(ours, SocketDeadline(ours, 30))
        writer.write(b"head")
        assert received(client) == b""
        writer.write(b"body")
        writer.send_small()
        assert received(client) == b"headbody"
        writer.flush()
        assert received(client) == b""


def test_a_large_response_is_sent_by_flush() -> None:
    ours, client = socket.socketpair()
    with ours, client:
        writer = ResponseWriter(ours, SocketDeadline(ours, 30))
        writer.write(b"a" * (MAX_SMALL_RESPONSE_BYTES + 1))
        writer.send_small()
        assert received(client) == b""
        writer.flush()
        assert len(received(client)) == MAX_SMALL_RESPONSE_BYTES + 1


def test_a_client_that_does_not_read_is_not_waited_for() -> None:
    ours, client = socket.socketpair()
    with ours, client:
        ours.setblocking(False)
        with suppress(BlockingIOError):
            while ours.send(b"a" * 65536):
                pass
        writer = ResponseWriter(ours, SocketDeadline(ours, 0.05))
        writer.write(b"ok")
        writer.send_small()
        with pytest.raises(TimeoutError):
            writer.flush()
