"""The agent's HTTP server: /metrics, /v1/snapshot, /healthz and, where enabled, /v1/actions.

It never blocks on the node: it serves results that collectors already have, and actions run on their own threads.
"""

from __future__ import annotations

import contextlib
import errno
import io
import logging
import math
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from monitor.agent.http_io import FramingError, LargeBodies, RequestReader, ResponseWriter, SocketDeadline, body_length
from monitor.agent.routes import (
    HEALTH_PATH,
    ActionEndpoint,
    ActionsDisabled,
    AgentReply,
    AgentRoutes,
    error_reply,
    is_action,
)
from monitor.agent.settings import TlsSettings
from monitor.base.connections import ConnectionLimits, ConnectionTable, OpenConnection, client_of
from monitor.base.net import break_off, connect_host, has_unread_data
from monitor.base.threads import spawn
from monitor.facts import NodeSnapshot

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)
HANDSHAKE_SECONDS = 10.0
REQUEST_SECONDS = 15.0  # head and body, including the wait for the next request on the same connection
RESPONSE_SECONDS = 15.0
LARGE_BODY_WAIT_SECONDS = 5.0
BUSY_RETRY_SECONDS = 5.0
ACCEPT_RETRY_SECONDS = 0.5
MAX_THREADS = 64  # more than connections: the thread of one that was disconnected ends a moment later
THREAD_WAIT_SECONDS = 1.0  # for such a thread to end; meanwhile new connections queue in the kernel
LIMITS = ConnectionLimits(total=32, per_client=16, reserved=8)
END_OF_HEAD = b"\r\n\r\n"
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _AgentRequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "gpuwarden-agent"
    sys_version = ""
    server: _AgentHttpServer

    def setup(self) -> None:
        self.connection = self.request
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open = self.server.opened[self.request]
        self._deadline = SocketDeadline(self.request, REQUEST_SECONDS)
        self._reader = RequestReader(self.request, self._deadline, self._begin_request)
        self.rfile = self._buffered = io.BufferedReader(self._reader)
        self.wfile = self._response = ResponseWriter(self.request, self._deadline)

    def handle_one_request(self) -> None:
        """Serve a request, which must be complete within REQUEST_SECONDS of the previous response."""
        self._deadline.restart(REQUEST_SECONDS)
        self._reader.begin_head()
        self._open.busy = END_OF_HEAD in self._buffered.peek()  # otherwise the client determines how long it takes
        self._open.begun = True
        super().handle_one_request()

    def _begin_request(self) -> None:
        self._open.busy = True

    def parse_request(self) -> bool:
        """Read the head. Refuse what is not framed beyond doubt, and all but health checks where capacity is short."""
        parsed = super().parse_request()
        self._open.busy &= parsed and self.command == "GET"  # a body depends on the client
        if not parsed:
            return False
        self._reader.begin_body()
        try:
            self._body_bytes = body_length(self.command, self.headers)
        except FramingError as error:
            self._refuse(error_reply(error.status, str(error)))
            return False
        if self._open.health_only and self._path() != HEALTH_PATH:
            self._refuse(error_reply(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections", BUSY_RETRY_SECONDS))
            return False
        return True

    def do_GET(self) -> None:
        path, authorization = self._path(), self.headers.get("Authorization", "")
        self.close_connection |= self._body_bytes > 0  # the body is not read
        self._open.busy = True
        query = self.path.partition("?")[2]
        reply = self._act("GET", b"") if is_action(path) else self.server.routes.answer(path, authorization, query)
        self._reply(reply)

    def do_POST(self) -> None:
        if not is_action(self._path()):  # the body is not read
            self._refuse(error_reply(HTTPStatus.METHOD_NOT_ALLOWED, "this path is read-only"))
            return
        try:
            with self.server.large_bodies.slot(self._open.client, self._body_bytes, LARGE_BODY_WAIT_SECONDS):
                body = self.rfile.read(self._body_bytes)
                if len(body) < self._body_bytes:
                    raise ConnectionAbortedError("incomplete body")
                self._open.busy = True
                reply = self._act("POST", body)
        except FramingError as error:
            self._refuse(error_reply(error.status, str(error), BUSY_RETRY_SECONDS))
        else:
            self._reply(reply)

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _act(self, method: str, body: bytes) -> AgentReply:
        authorization, peer = self.headers.get("Authorization", ""), str(self.client_address[0])
        status, reply, retry_after = self.server.actions.answer(method, self._path(), authorization, peer, body)
        return AgentReply(status, reply, retry_after=retry_after)

    def _refuse(self, reply: AgentReply) -> None:
        """Send a reply and close the connection: what the client sends next may be a body."""
        self.close_connection = True
        self._reply(reply)

    def _reply(self, reply: AgentReply) -> None:
        self._deadline.restart(RESPONSE_SECONDS)
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        if reply.status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if reply.retry_after is not None:
            self.send_header("Retry-After", str(math.ceil(reply.retry_after)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self._response.write(reply.body)
        self._response.send_small()
        self._open.busy = False  # the rest depends on the client
        self._response.flush()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named by the base class
        log.debug("%.200s", format % args)


class _AgentHttpServer(ThreadingHTTPServer):
    """One thread per connection, within LIMITS."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(
        self, address: tuple[str, int], routes: AgentRoutes, actions: ActionEndpoint, tls: ssl.SSLContext | None
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.routes = routes
        self.actions = actions
        self.large_bodies = LargeBodies()
        self.opened: dict[socket.socket, OpenConnection] = {}
        self._connections = ConnectionTable(LIMITS)
        self._free_threads = threading.BoundedSemaphore(MAX_THREADS)
        self._tls = tls
        super().__init__(address, _AgentRequestHandler)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Pause if the process is out of descriptors, instead of trying again at once."""
        try:
            request, address = super().get_request()
        except OSError as error:
            if error.errno in OUT_OF_RESOURCES:
                log.warning("cannot accept a connection: %s", error)
                time.sleep(ACCEPT_RETRY_SECONDS)
            raise
        if self._tls is not None:  # the handshake follows on the thread of the connection
            request = self._tls.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
        return request, address

    def process_request(self, request: Any, client_address: Any) -> None:
        connection = None
        if self._free_threads.acquire(timeout=THREAD_WAIT_SECONDS):
            client = client_of(str(client_address[0]))
            connection = self._connections.admit(client, partial(break_off, request), partial(has_unread_data, request))
            if connection is None:
                self._free_threads.release()
        if connection is None:
            self.shutdown_request(request)
            return
        self.opened[request] = connection
        super().process_request(request, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self._tls is not None:
            request.settimeout(HANDSHAKE_SECONDS)  # for the whole handshake, however its bytes arrive
            request.do_handshake()
        super().finish_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget the connection before its socket is closed: another thread may be about to break it off."""
        connection = self.opened.pop(request, None)
        if connection is not None:
            self._connections.remove(connection)
            self._free_threads.release()
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log at debug level: the base class prints a traceback for each client that disconnects."""
        log.debug("client %s of request %s disconnected", client_address, request)


class AgentServer:
    """The server on its own thread, which blocks in accept: an idle agent does not wake up to poll."""

    def __init__(
        self,
        host: str,
        port: int,
        token: str | None,
        snapshot: Callable[[], NodeSnapshot],
        actions: ActionEndpoint | None = None,
        tls: TlsSettings | None = None,
    ) -> None:
        """Raise OSError if the address cannot be bound or the certificate cannot be used."""
        context = tls_context(tls) if tls else None
        self._server = _AgentHttpServer(
            (host, port), AgentRoutes(snapshot, token), actions or ActionsDisabled(), context
        )
        self._stopping = False
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), port

    def start(self) -> None:
        self._thread = spawn("http", self._serve)

    def stop(self) -> None:
        self._stopping = True
        host, port = self.address
        with contextlib.suppress(OSError):  # a last connection wakes the thread from accept
            socket.create_connection((connect_host(host), port), timeout=1).close()
        if self._thread is not None:
            self._thread.join(1)
        self._server.server_close()

    def _serve(self) -> None:
        while not self._stopping:
            self._server.handle_request()


def tls_context(tls: TlsSettings) -> ssl.SSLContext:
    """TLS context of the server. Raise OSError if one of the files cannot be used."""
    import ssl  # not loaded without TLS

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.cert_file, tls.key_file)
        if tls.client_ca_file is not None:
            context.load_verify_locations(tls.client_ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:  # including SSLError
        raise OSError(errno.EINVAL, f"agent.actions.tls: a file cannot be used: {error}") from error
    return context
