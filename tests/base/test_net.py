"""Whether a connection has unread data."""

from __future__ import annotations

import socket

from monitor.base.net import has_unread_data


def test_only_data_that_waits_on_an_open_connection_counts() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not has_unread_data(ours)
        theirs.send(b"GET")
        assert has_unread_data(ours)
        ours.recv(10)
        assert not has_unread_data(ours)
        theirs.send(b"GET")
        theirs.close()
        assert not has_unread_data(ours)  # the client does not wait for an answer
    assert not has_unread_data(ours)
