"""Connections of urllib3 that a Cancellation can break off, new ones and those from a pool."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from monitor.base.threads import Cancellation

_this_thread = threading.local()


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """Register the connections that this thread uses inside the block."""
    _this_thread.cancellation = cancellation
    try:
        yield
    finally:
        _this_thread.cancellation = None


def _hold(sock: socket.socket) -> None:
    cancellation: Cancellation | None = getattr(_this_thread, "cancellation", None)
    if cancellation is not None:
        cancellation.hold(sock)


def _held(sock: socket.socket) -> socket.socket:
    try:
        _hold(sock)
    except BaseException:
        sock.close()
        raise
    return sock


class _HeldHttp(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _held(super()._new_conn())

    def request(self, *args: Any, **more: Any) -> None:
        if self.sock is not None:  # from the pool
            _hold(self.sock)
        super().request(*args, **more)


class _HeldHttps(_HeldHttp, HTTPSConnection):
    """The same with TLS."""


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _HeldHttp


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _HeldHttps


POOL_CLASSES = {"http": _HttpPool, "https": _HttpsPool}
