"""The agent's HTTP server: /metrics, /v1/snapshot, /healthz and, where enabled, /v1/actions.

It never blocks on the node: it serves results that collectors already have, and actions run on their own threads.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import logging
import math
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from monitor.agent.metrics import AgentMetrics
from monitor.agent.settings import TlsSettings
from monitor.base.net import connect_host
from monitor.base.threads import spawn
from monitor.facts import NodeSnapshot
from monitor.facts.actions import ActionsFact

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)
CLIENT_TIMEOUT_SECONDS = 15.0  # an idle client is disconnected after this time
MAX_CONNECTIONS = 32
MAX_BODY_BYTES = 4 * 1024 * 1024  # enough for the names of all images that a large cluster needs
JSON_CONTENT_TYPE = "application/json"
ACTIONS_PATH = "/v1/actions"


class AgentReply(NamedTuple):
    """An HTTP response."""

    status: HTTPStatus
    body: bytes
    content_type: str = JSON_CONTENT_TYPE
    retry_after: float | None = None


class ActionEndpoint(Protocol):
    """Serves requests below /v1/actions: status, JSON body, and the Retry-After value in seconds."""

    def answer(
        self, method: str, path: str, authorization: str, peer: str, body: bytes
    ) -> tuple[HTTPStatus, bytes, float | None]: ...

    def fact(self) -> ActionsFact: ...

    def stop(self) -> None: ...


class ActionsDisabled:
    """Refuses all actions and counts the refusals."""

    def __init__(self) -> None:
        self._fact = ActionsFact(enabled=False)

    def answer(
        self, _method: str, _path: str, _authorization: str, _peer: str, _body: bytes
    ) -> tuple[HTTPStatus, bytes, float | None]:
        refused = self._fact.refused.get("disabled", 0) + 1
        self._fact = ActionsFact(enabled=False, refused={"disabled": refused}, refused_at=time.time())
        return HTTPStatus.FORBIDDEN, b'{"error":"disabled: set agent.actions.enabled"}', None

    def fact(self) -> ActionsFact:
        return self._fact

    def stop(self) -> None:
        """Nothing is running."""


class AgentRoutes:
    """Responses to GET requests outside /v1/actions."""

    def __init__(self, snapshot: Callable[[], NodeSnapshot], token: str | None) -> None:
        self._snapshot = snapshot
        self._token = token.encode() if token else None
        self._exposition = AgentMetrics()
        self._encode = msgspec.json.Encoder().encode

    def answer(self, path: str, authorization: str) -> AgentReply:
        route = {"/metrics": self._metrics, "/v1/snapshot": self._json, "/healthz": self._health}.get(path)
        if route is None:
            return _error_reply(HTTPStatus.NOT_FOUND, "there are /metrics, /v1/snapshot and /healthz")
        if path != "/healthz" and not self._authorized(authorization):
            return _error_reply(HTTPStatus.UNAUTHORIZED, "send the agent's token as Authorization: Bearer")
        return route()

    def _authorized(self, authorization: str) -> bool:
        if self._token is None:
            return True
        scheme, _, token = authorization.partition(" ")
        as_sent = token.strip().encode("latin-1", "replace")  # http.server decodes headers as Latin-1
        return scheme.lower() == "bearer" and hmac.compare_digest(as_sent, self._token)

    def _metrics(self) -> AgentReply:
        return AgentReply(HTTPStatus.OK, self._exposition.render(self._snapshot()), CONTENT_TYPE_LATEST)

    def _json(self) -> AgentReply:
        return AgentReply(HTTPStatus.OK, self._encode(self._snapshot()))

    def _health(self) -> AgentReply:
        """Always "ok": a hung driver is a fault of the node, which restarting the agent does not fix."""
        hung = {fact.name: fact.hung_since for fact in self._snapshot().collectors if fact.hung_since}
        return AgentReply(HTTPStatus.OK, self._encode({"status": "ok", "hung": hung}))


class _AgentRequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = CLIENT_TIMEOUT_SECONDS
    server_version = "gpuwarden-agent"
    sys_version = ""
    disable_nagle_algorithm = True
    server: _AgentHttpServer

    def do_GET(self) -> None:
        path, authorization = self.path.partition("?")[0], self.headers.get("Authorization", "")
        if _is_action(path):
            self._reply(self._act("GET", path, b""))
        else:
            self._reply(self.server.routes.answer(path, authorization))

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        if not _is_action(path):
            self.close_connection = True  # the body is not read
            self._reply(_error_reply(HTTPStatus.METHOD_NOT_ALLOWED, "this path is read-only"))
            return
        body = self._body()
        if body is None:
            self.close_connection = True
            text = f"send a body of at most {MAX_BODY_BYTES} bytes, with Content-Length"
            self._reply(_error_reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text))
            return
        self._reply(self._act("POST", path, body))

    def _act(self, method: str, path: str, body: bytes) -> AgentReply:
        authorization, peer = self.headers.get("Authorization", ""), str(self.client_address[0])
        status, reply, retry_after = self.server.actions.answer(method, path, authorization, peer, body)
        return AgentReply(status, reply, retry_after=retry_after)

    def _body(self) -> bytes | None:
        """The request body, or None if it is too long or has no Content-Length."""
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length[:12]) > MAX_BODY_BYTES:
            return None
        return self.rfile.read(int(length))

    def _reply(self, reply: AgentReply) -> None:
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
        self.wfile.write(reply.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named by the base class
        log.debug(format, *args)


class _AgentHttpServer(ThreadingHTTPServer):
    """One thread per connection, up to MAX_CONNECTIONS."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(
        self, address: tuple[str, int], routes: AgentRoutes, actions: ActionEndpoint, tls: ssl.SSLContext | None
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.routes = routes
        self.actions = actions
        self._tls = tls
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, _AgentRequestHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Perform the TLS handshake on the connection's thread, so that a slow client does not delay others."""
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        request.settimeout(CLIENT_TIMEOUT_SECONDS)
        with self._tls.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

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


def _error_reply(status: HTTPStatus, text: str) -> AgentReply:
    return AgentReply(status, msgspec.json.encode({"error": text}))


def _is_action(path: str) -> bool:
    return path == ACTIONS_PATH or path.startswith(f"{ACTIONS_PATH}/")
