"""Bounded HTTP input and output: deadlines that slow clients cannot extend, and strict framing of requests."""

from __future__ import annotations

import io
import select
import socket
import string
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http import HTTPStatus
from http.client import HTTPException
from typing import Any

MAX_HEAD_BYTES = 32 * 1024  # request line and headers
MAX_BODY_BYTES = 4 * 1024 * 1024  # enough for the names of all images that a large cluster needs
MAX_LENGTH_CHARS = 10  # of Content-Length
MAX_SMALL_BODY_BYTES = 64 * 1024
MAX_SMALL_RESPONSE_BYTES = 4096  # those of health checks and errors
MAX_LARGE_BODIES = 2  # at a time, each of another client
MAX_WAITING_BODIES = 8  # for their turn, each of another client: each keeps a thread, also if it is disconnected
_NAME_CHARS = frozenset(string.ascii_letters + string.digits + "!#$%&'*+-.^_`|~")  # a token of RFC 9110


class FramingError(Exception):
    """The body of a request cannot be read: its end is in doubt, or it is too large."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def body_length(method: str, headers: Message) -> int:
    """Length of a request's body. Raise FramingError unless it is beyond doubt."""
    if headers.defects or any(not name or set(name) - _NAME_CHARS for name in headers):
        raise FramingError(HTTPStatus.BAD_REQUEST, "malformed header")
    if "Transfer-Encoding" in headers:
        raise FramingError(HTTPStatus.BAD_REQUEST, "send the body with Content-Length, not with Transfer-Encoding")
    lengths = [str(value) for value in headers.get_all("Content-Length", [])]
    if not lengths:
        if method == "POST":
            raise FramingError(HTTPStatus.LENGTH_REQUIRED, "send Content-Length")
        return 0
    if len(lengths) > 1 or not lengths[0].isascii() or not lengths[0].isdigit() or len(lengths[0]) > MAX_LENGTH_CHARS:
        raise FramingError(HTTPStatus.BAD_REQUEST, "send one valid Content-Length")
    length = int(lengths[0])
    if length > MAX_BODY_BYTES:
        raise FramingError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"send a body of at most {MAX_BODY_BYTES} bytes")
    return length


class SocketDeadline:
    """The time by which all operations on a socket together must be complete."""

    def __init__(self, sock: socket.socket, seconds: float) -> None:
        self._sock = sock
        self._end = 0.0
        self.restart(seconds)

    def restart(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that remain. Raise TimeoutError if there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("deadline exceeded")
        return left

    def apply(self) -> None:
        """Limit the next operation of the socket to the time that remains."""
        self._sock.settimeout(self.left())


class RequestReader(io.RawIOBase):
    """Reads requests until their deadline; the size of the head is limited.

    Before it reads the first data of a request, it calls `on_request`.
    """

    def __init__(self, sock: socket.socket, deadline: SocketDeadline, on_request: Callable[[], None]) -> None:
        self._sock = sock
        self._deadline = deadline
        self._on_request = on_request
        self._head_bytes: int | None = None

    def begin_head(self) -> None:
        """Count what is read from now on as the head of a request."""
        self._head_bytes = 0

    def begin_body(self) -> None:
        """Stop counting: the caller limits how much it reads."""
        self._head_bytes = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._deadline.apply()
        if self._head_bytes == 0 and not hasattr(self._sock, "pending"):  # TLS may hold data that the kernel lacks
            self._wait_readable()
            self._on_request()
        count = self._sock.recv_into(buffer)
        if self._head_bytes is not None:
            self._head_bytes += count
            if self._head_bytes > MAX_HEAD_BYTES:
                raise HTTPException(f"more than {MAX_HEAD_BYTES} bytes")
        return count

    def _wait_readable(self) -> None:
        """Wait for data without reading it: once it is read, nothing shows that the client has sent a request."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        if not poll.poll(self._deadline.left() * 1000):
            raise TimeoutError("deadline exceeded")


class ResponseWriter(io.BufferedIOBase):
    """Collects a response and sends it completely, or raises TimeoutError at its deadline."""

    def __init__(self, sock: socket.socket, deadline: SocketDeadline) -> None:
        self._sock = sock
        self._deadline = deadline
        self._unsent: list[memoryview] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._unsent.append(memoryview(data))
        return len(data)

    def send_small(self) -> None:
        """Send a small response, as far as that does not depend on the client."""
        if sum(map(len, self._unsent)) > MAX_SMALL_RESPONSE_BYTES:
            return
        response = b"".join(self._unsent)
        self._sock.settimeout(0)
        try:
            sent = self._sock.send(response) if response else 0
        except OSError:  # it would block, or the client is gone, which flush() reports
            sent = 0
        self._unsent = [memoryview(response)[sent:]]

    def flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        for rest in unsent:
            while rest:
                self._deadline.apply()
                rest = rest[self._sock.send(rest) :]  # noqa: PLW2901  # what remains of it


class LargeBodies:
    """Bounds the memory of request bodies, which are read before their signature can be checked."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._clients: list[str] = []
        self._waiting: list[str] = []

    @contextmanager
    def slot(self, client: str, body_bytes: int, wait_seconds: float) -> Iterator[None]:
        """Hold one of the slots while a large body is in memory. Raise FramingError if none becomes free."""
        if body_bytes <= MAX_SMALL_BODY_BYTES:
            yield
            return
        with self._changed:
            if not self._is_free_for(client) and not self._wait_for_turn(client, wait_seconds):
                raise FramingError(HTTPStatus.SERVICE_UNAVAILABLE, "too many large requests at once")
            self._clients.append(client)
        try:
            yield
        finally:
            with self._changed:
                self._clients.remove(client)
                self._changed.notify_all()

    def _wait_for_turn(self, client: str, seconds: float) -> bool:
        """Whether a slot became free in time."""
        if client in self._waiting or len(self._waiting) >= MAX_WAITING_BODIES:
            return False
        self._waiting.append(client)
        try:
            return self._changed.wait_for(lambda: self._is_free_for(client), seconds)
        finally:
            self._waiting.remove(client)

    def _is_free_for(self, client: str) -> bool:
        return client not in self._clients and len(self._clients) < MAX_LARGE_BODIES
