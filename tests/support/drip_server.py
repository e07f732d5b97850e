"""A server that sends one byte now and then, forever."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

DRIP_SECONDS = 0.05


class DripServer:
    """Sends a greeting to each client at once, and then `drop` again and again until the client hangs up."""

    def __init__(self, greeting: bytes, drop: bytes = b"0", path: str | None = None) -> None:
        """Listen on a loopback port, or on a unix socket at `path`."""
        self._greeting = greeting
        self._drop = drop
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._clients = 0
        self.accepted = 0
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0))
            self.port: int = self._listener.getsockname()[1]
            self.target = f"127.0.0.1:{self.port}"
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(path)
            self._listener.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def clients(self) -> int:
        """Number of connections that are still open."""
        with self._lock:
            return self._clients

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._closing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread from accept
        self._listener.close()
        self._thread.join(60)

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._clients += 1
                self.accepted += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.sendall(self._greeting)
            while not self._closing.wait(DRIP_SECONDS):
                client.sendall(self._drop)
        with self._lock:
            self._clients -= 1
