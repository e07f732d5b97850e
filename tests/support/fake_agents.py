"""Fake agents on loopback ports with scripted behaviour: correct, malformed, slow or silent."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from monitor.facts import NodeSnapshot
from tests.support.serving import Serving

Behaviour = Callable[["_Handler"], None]
DRIP = 0.05  # seconds between two bytes of a trickling agent


class FakeAgent(Serving):
    """One agent. `behave` may be replaced at any time; `asked` holds the monotonic times of the requests."""

    def __init__(self, behave: Behaviour, host: str = "127.0.0.1", port: int = 0) -> None:
        self.behave = behave
        self.asked: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._server = _Server((host, port), _Handler)
        super().__init__(self._server)
        self._server.agent = self
        self.port = self._server.server_port
        self.target = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    agent: FakeAgent

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect: tests do that on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        agent = self.server.agent
        agent.asked.append(time.monotonic())
        agent.paths.append(self.path)
        agent.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.close_connection = True
        agent.behave(self)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is inherited
        """Silence the request log."""

    def begin(self, code: int = 200, reason: str | None = None, **headers: object) -> None:
        self.send_response(code, reason)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def drip(self, data: bytes) -> None:
        """Send byte by byte until everything is sent or the agent is closed."""
        for byte in data:
            self.wfile.write(bytes([byte]))
            if self.server.agent.closing.wait(DRIP):
                return


# Behaviours


def answers(body: bytes, code: int = 200, reason: str | None = None, **headers: object) -> Behaviour:
    """Respond with this body."""

    def behave(handler: _Handler) -> None:
        handler.begin(code, reason, **({"Content_Length": len(body)} | headers))
        handler.wfile.write(body)

    return behave


def reports(snapshot: NodeSnapshot | str, after: float = 0.0) -> Behaviour:
    """Respond with a snapshot, or with an empty one of the named node, after a delay in seconds."""
    if isinstance(snapshot, str):
        snapshot = NodeSnapshot(node=snapshot, at=time.time(), agent_version="0")
    body = msgspec.json.encode(snapshot)

    def behave(handler: _Handler) -> None:
        handler.server.agent.closing.wait(after)
        answers(body)(handler)

    return behave


def says_nothing(handler: _Handler) -> None:
    """Accept the request and never respond."""
    handler.server.agent.closing.wait()


def trickles_headers(handler: _Handler) -> None:
    handler.drip(b"HTTP/1.1 200 OK\r\n" + b"X-Padding: 0\r\n" * 100)


def trickles(handler: _Handler) -> None:
    handler.begin(Content_Length=100_000)
    handler.drip(b" " * 100_000)


def trickles_chunks(handler: _Handler) -> None:
    handler.begin(Transfer_Encoding="chunked")
    handler.drip(b"1\r\n \r\n" * 10_000)


def sends(mebibytes: int, **headers: object) -> Behaviour:
    """Send this many bytes, whether or not Content-Length announces them."""

    def behave(handler: _Handler) -> None:
        handler.begin(200, None, **headers)
        for _ in range(mebibytes):
            handler.wfile.write(b" " * 1024**2)

    return behave


def sends_chunks(mebibytes: int) -> Behaviour:
    """Send this many bytes in chunks."""

    def behave(handler: _Handler) -> None:
        handler.begin(Transfer_Encoding="chunked")
        for _ in range(mebibytes):
            handler.wfile.write(b"100000\r\n" + b" " * 1024**2 + b"\r\n")

    return behave


def says(raw: bytes) -> Behaviour:
    """Send exactly these bytes, then close the connection."""
    return lambda handler: _write(handler, raw)


def _write(handler: _Handler, raw: bytes) -> None:
    handler.wfile.write(raw)


def resets(handler: _Handler) -> None:
    """Reset the connection, like a crashed machine."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


@contextlib.contextmanager
def full_house() -> Iterator[str]:
    """Address of a listener with a full backlog: connecting blocks."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(4):
            guest = stack.enter_context(socket.socket())
            guest.setblocking(False)
            guest.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"
