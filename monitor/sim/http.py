"""Minimal HTTP server for the simulation, with many connections on one loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

MAX_BODY_BYTES = 1 << 20


@dataclass(frozen=True)
class SimRequest:
    """A request. `at` is the loopback address that received it, which identifies the agent."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    at: str


Handler = Callable[[SimRequest, asyncio.StreamWriter], Awaitable[None]]


class SimServer:
    """Serves one handler on any number of addresses."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, hosts: list[str], port: int = 0) -> int:
        """Listen on the same port of every address, and return it."""
        for host in hosts:
            server = await asyncio.start_server(self._begin, host, port, backlog=1024)
            self._servers.append(server)
            port = server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Stop listening, and close all connections."""
        for server in self._servers:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader, writer)) is not None:
                await self._handler(request, writer)
                await writer.drain()
                if request.headers.get("connection", "").lower() == "close":
                    return
        except (ConnectionError, asyncio.IncompleteReadError, ValueError, asyncio.LimitOverrunError):
            pass  # the client disconnected, or does not speak HTTP
        finally:
            with contextlib.suppress(Exception):  # the connection may already be closed
                writer.close()


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> SimRequest | None:
    """Next request of a connection; None at its end."""
    line = (await reader.readline()).decode("latin-1").split()
    if len(line) < 2:
        return None
    headers: dict[str, str] = {}
    while header := (await reader.readline()).decode("latin-1").strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    length = min(int(headers.get("content-length") or 0), MAX_BODY_BYTES)
    body = await reader.readexactly(length) if length else b""
    url = urlsplit(line[1])
    at = str(writer.get_extra_info("sockname")[0])
    return SimRequest(line[0], unquote(url.path), dict(parse_qsl(url.query)), headers, body, at)


def write_response(
    writer: asyncio.StreamWriter, body: bytes, status: int = 200, content_type: str = "application/json"
) -> None:
    """Write a complete response."""
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {content_type}\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)


def start_chunked_response(writer: asyncio.StreamWriter) -> None:
    """Write the head of a chunked response."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")


def write_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write a chunk of a chunked response."""
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
