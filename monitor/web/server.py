"""The web server, on its own thread so that the main thread can wait for signals.

uvicorn limits neither connections nor the time of a request, so the protocol below does: a client must send the head,
send the body and read the response within a deadline each, and gives way to others when the server is full.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import h11
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitor.base.connections import ConnectionLimits, ConnectionTable, OpenConnection, client_of
from monitor.base.net import Network, has_unread_data, in_networks
from monitor.base.process import max_descriptors
from monitor.base.threads import spawn

GRACE_SECONDS = 1
KEEP_ALIVE_SECONDS = 5
PHASE_SECONDS = 20.0  # to send a head, to send a body, and to read a response
MAX_HEAD_BYTES = 32 * 1024
MAX_HEADERS = 100
MAX_BACKLOG = 128  # connections that asyncio may accept before the protocol can refuse any
MAX_CONNECTIONS = 512
MIN_CONNECTIONS = 16
MAX_UNSENT_BYTES = 128 * 1024 * 1024  # of all responses together
HEALTH_PATH = "/healthz"


def connection_limits(descriptors: int) -> ConnectionLimits:
    """Limits that leave most descriptors to the polling of agents, to Kubernetes, receivers and stored state."""
    total = max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, descriptors // 4))
    return ConnectionLimits(total=total, per_client=total // 2, reserved=max(4, total // 16))


class WebServer:
    """Serves an application on a listening socket; `proxies` may use all connections."""

    def __init__(self, app: ASGIApp, listening: socket.socket, proxies: Sequence[Network] = ()) -> None:
        limits = connection_limits(max_descriptors())
        protocol = partial(LimitedProtocol, table=ConnectionTable(limits), proxies=tuple(proxies))
        config = uvicorn.Config(
            strict(app),
            http=cast("type[asyncio.Protocol]", protocol),
            ws="none",
            lifespan="off",
            log_config=None,  # use the logging of the process
            log_level="warning",
            access_log=False,
            proxy_headers=False,  # the authenticator decides which proxies to trust
            server_header=False,
            backlog=min(MAX_BACKLOG, limits.total),
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        )
        self._server = uvicorn.Server(config)
        # asyncio sets this only on sockets that name their protocol. Without it, the body of a response waits for the
        # client's delayed acknowledgement of its head: 40 ms. Connections inherit it.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = listening
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The host and port of the socket."""
        host, port = self._socket.getsockname()[:2]
        return host, port

    @property
    def running(self) -> bool:
        """Whether the server thread is alive; it ends on begin_stop() or a fatal error."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        self._thread = spawn("web", lambda: self._server.run(sockets=[self._socket]))

    def begin_stop(self) -> None:
        """Stop accepting requests; those in progress have GRACE_SECONDS to finish."""
        self._server.should_exit = True

    def wait_stopped(self) -> None:
        if self._thread is not None:
            self._thread.join(GRACE_SECONDS + 0.5)


class LimitedProtocol(H11Protocol):
    """HTTP/1.1 with limited connections and with a deadline for everything that the client does."""

    def __init__(self, *, table: ConnectionTable, proxies: tuple[Network, ...], **uvicorn_arguments: Any) -> None:
        super().__init__(**uvicorn_arguments)
        self._table = table
        self._proxies = proxies
        self._open: OpenConnection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._phase: object = None
        self._sending = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        super().connection_made(transport)
        address = self.client[0] if self.client is not None else ""
        trusted = in_networks(address, self._proxies)
        has_data = partial(has_unread_data, transport.get_extra_info("socket"))
        self._open = self._table.admit(client_of(address), transport.abort, has_data, trusted=trusted)
        if self._open is None:
            transport.abort()
            return
        if self._open.health_only:
            self.app = cast("Any", health_only(cast("ASGIApp", self.app)))
        self._advance()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._open is not None:
            self._table.remove(self._open)
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._open is not None:
            self._open.begun = True
        super().data_received(data)
        self._advance()

    def on_response_complete(self) -> None:
        self._sending = False
        super().on_response_complete()
        self._advance()

    def pause_writing(self) -> None:
        """Limit the time in which the client reads the response, and the memory of all responses together."""
        super().pause_writing()
        self._sending = True
        self._advance()
        open_transports = [connection.transport for connection in self.connections]
        if sum(map(_unsent_bytes, open_transports)) > MAX_UNSENT_BYTES:
            max(open_transports, key=_unsent_bytes).abort()

    def _advance(self) -> None:
        """Start the deadline of the phase that the connection has entered; the server's own work has none."""
        phase = "sending" if self._sending else phase_of(self.conn)
        if phase == self._phase or self._open is None:
            return
        self._phase = phase
        self._open.busy = phase == "working"
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if self._open.busy else self.loop.call_later(PHASE_SECONDS, self.transport.abort)


def phase_of(connection: h11.Connection) -> str:
    """What the next step on a connection is: that the client sends a head or body, or that the server responds."""
    if connection.their_state is h11.IDLE:
        return "head"
    if connection.our_state not in (h11.SEND_RESPONSE, h11.SEND_BODY):
        return "closing"
    return "body" if connection.their_state is h11.SEND_BODY else "working"


def strict(app: ASGIApp) -> ASGIApp:
    """The application without requests that are oversized, or whose end proxies and servers understand differently."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        refusal = refusal_of(scope["headers"])
        await (app if refusal is None else refusal)(scope, receive, send)

    return serve


def refusal_of(headers: Sequence[tuple[bytes, bytes]]) -> ASGIApp | None:
    """Response to a request with inadmissible headers."""
    if len(headers) > MAX_HEADERS or sum(len(name) + len(value) for name, value in headers) > MAX_HEAD_BYTES:
        return _refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too many headers")
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}:
        return _refusal(HTTPStatus.BAD_REQUEST, "both Content-Length and Transfer-Encoding")
    return None


def health_only(app: ASGIApp) -> ASGIApp:
    """The application of a connection beyond the limits: it serves health checks and refuses the rest."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == HEALTH_PATH:
            await app(scope, receive, send)
        else:
            await _refusal(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")(scope, receive, send)

    return serve


def _refusal(status: HTTPStatus, text: str) -> PlainTextResponse:
    return PlainTextResponse(f"{text}\n", status, {"Connection": "close"})


def _unsent_bytes(transport: asyncio.Transport) -> int:
    return transport.get_write_buffer_size()
