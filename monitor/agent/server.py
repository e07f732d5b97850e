"""The agent's HTTP side: /metrics, /v1/snapshot, /healthz. It reads only what the runner holds: it always answers."""

from __future__ import annotations

import contextlib
import hmac
import logging
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from monitor.addresses import reached_at
from monitor.agent.metrics import Exposition
from monitor.facts import NodeSnapshot

log = logging.getLogger(__name__)
CLIENT_TIMEOUT = 15.0  # a client that says nothing for so long is dropped
MAX_CONNECTIONS = 32
JSON = "application/json"

Reply = tuple[HTTPStatus, str, bytes]


class Pages:
    """What the server answers, apart from how."""

    def __init__(self, snapshot: Callable[[], NodeSnapshot], token: str | None) -> None:
        self._snapshot = snapshot
        self._token = token.encode() if token else None
        self._exposition = Exposition()
        self._encode = msgspec.json.Encoder().encode

    def answer(self, path: str, authorization: str) -> Reply:
        """Given a path and the Authorization header, return status, content type and body."""
        page = {"/metrics": self._metrics, "/v1/snapshot": self._json, "/healthz": self._health}.get(path)
        if page is None:
            return HTTPStatus.NOT_FOUND, JSON, b'{"error":"there are /metrics, /v1/snapshot and /healthz"}'
        if path != "/healthz" and not self._authorized(authorization):
            return HTTPStatus.UNAUTHORIZED, JSON, b'{"error":"send the agent\'s token as Authorization: Bearer"}'
        return page()

    def _authorized(self, authorization: str) -> bool:
        if self._token is None:
            return True
        scheme, _, given = authorization.partition(" ")
        as_sent = given.strip().encode("latin-1", "replace")  # the server decodes headers as Latin-1
        return scheme.lower() == "bearer" and hmac.compare_digest(as_sent, self._token)

    def _metrics(self) -> Reply:
        return HTTPStatus.OK, CONTENT_TYPE_LATEST, self._exposition.render(self._snapshot())

    def _json(self) -> Reply:
        return HTTPStatus.OK, JSON, self._encode(self._snapshot())

    def _health(self) -> Reply:
        """The agent is well as long as it answers; a hung driver is the node's trouble and no reason to restart us."""
        hung = {fact.name: fact.hung_since for fact in self._snapshot().collectors if fact.hung_since}
        return HTTPStatus.OK, JSON, self._encode({"status": "ok", "hung": hung})


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = CLIENT_TIMEOUT
    server_version = "gpuwarden-agent"
    sys_version = ""
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        status, content_type, body = self.server.pages.answer(
            self.path.partition("?")[0], self.headers.get("Authorization", "")
        )
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class names it so
        log.debug(format, *args)


class _Server(ThreadingHTTPServer):
    """A thread a connection, and a bound on them."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], pages: Pages) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.pages = pages
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is its own affair: keep the base class from printing a traceback for it."""
        log.debug("client %s of request %s went away", client_address, request)


class AgentServer:
    """The server on its own thread, which sleeps until somebody connects: an idle agent is not woken to look around."""

    def __init__(self, host: str, port: int, token: str | None, snapshot: Callable[[], NodeSnapshot]) -> None:
        self._server = _Server((host, port), Pages(snapshot, token))
        self._stopping = False
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), port

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop accepting, and close the socket."""
        self._stopping = True
        host, port = self.address
        with contextlib.suppress(OSError):  # one last connection wakes the thread, so that it sees that it should end
            socket.create_connection((reached_at(host), port), timeout=1).close()
        self._thread.join(1)
        self._server.server_close()

    def _serve(self) -> None:
        while not self._stopping:
            self._server.handle_request()
