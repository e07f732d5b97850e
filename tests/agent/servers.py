"""Servers that misbehave in one particular way."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def server(behave: Callable[[socket.socket], object]) -> Iterator[int]:
    """Listen on a port of 127.0.0.1, which is yielded, and let `behave` treat each connection, on its own thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, behave), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def _accept(listener: socket.socket, behave: Callable[[socket.socket], object]) -> None:
    with suppress(OSError):  # the listener was shut down: the test is over
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_treat, args=(connection, behave), daemon=True).start()


def _treat(connection: socket.socket, behave: Callable[[socket.socket], object]) -> None:
    with connection, suppress(OSError):  # whoever was connected may leave at any time
        behave(connection)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def reset_after_reading(connection: socket.socket) -> None:
    connection.recv(4096)
    reset(connection)


def close_after_reading(connection: socket.socket) -> None:
    connection.recv(4096)


def stay_silent(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def drip(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"H")
        time.sleep(0.05)


def flood(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"H" * 4096)


def answer(text: str) -> Callable[[socket.socket], None]:
    def behave(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(text.encode())

    return behave
