"""An API server that plays a script, for faults too rare to provoke on a real one.

Each list and watch of a resource consumes the next reply of its script. The last list reply repeats; after the last
watch reply the server stays silent until it is closed.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.serving import Serving

Reply = Callable[["_Handler"], None]


class Request:
    """A recorded request."""

    def __init__(self, handler: _Handler) -> None:
        parts = urlsplit(handler.path)
        self.path = parts.path
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.headers = {name.lower(): value for name, value in handler.headers.items()}

    @property
    def watch(self) -> bool:
        return self.query.get("watch") == "true"


class ScriptedApi(Serving):
    """The server. `lists`, `watches` and `groups` are scripts; `requests` are the received requests in order."""

    def __init__(
        self,
        lists: Sequence[Reply],
        watches: Sequence[Reply] = (),
        groups: Sequence[Reply] = (),
        token: str | None = None,
        port: int = 0,
    ) -> None:
        self._scripts = {"list": list(lists), "watch": list(watches), "group": list(groups)}
        self._lock = threading.Lock()
        self.token = token
        self.requests: list[Request] = []
        self._server = _Server(("127.0.0.1", port), _Handler)
        super().__init__(self._server)
        self._server.api = self
        self.port = self._server.server_port

    def kubeconfig(self, folder: Path, user: str = "{}") -> str:
        """Path of a kubeconfig for this server."""
        path = folder / "kubeconfig"
        path.write_text(f"""
apiVersion: v1
kind: Config
clusters: [{{name: scripted, cluster: {{server: "http://127.0.0.1:{self.port}"}}}}]
users: [{{name: someone, user: {user}}}]
contexts: [{{name: it, context: {{cluster: scripted, user: someone}}}}]
current-context: it
""")
        return str(path)

    def asked(self, kind: str) -> list[Request]:
        """Requests of one kind: list, watch or group."""
        return [request for request in self.requests if _kind(request) == kind]

    def next_reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            if self.token is not None and request.headers.get("authorization") != f"Bearer {self.token}":
                return status(401, "Unauthorized", "Unauthorized")
            kind = _kind(request)
            script = self._scripts[kind]
            if not script:
                return silence if kind == "watch" else status(404, "NotFound", "the script has no reply")
            return script[0] if kind != "watch" and len(script) == 1 else script.pop(0)


def _kind(request: Request) -> str:
    if request.watch:
        return "watch"
    return "group" if request.path.startswith("/apis/") and request.path.count("/") == 2 else "list"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    api: ScriptedApi

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect: tests do that on purpose."""

    def server_close(self) -> None:
        self.drop_all()
        super().server_close()

    def drop_all(self) -> None:
        for connection in list(self._open):
            reset(connection)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self.server.api.next_reply(Request(self))(self)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is inherited
        """Silence the request log."""

    def answer(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def begin(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


def reset(connection: socket.socket) -> None:
    """Reset the connection, like a crash or a load balancer."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # the client closed it first
        return


# Replies


def answer(body: object, code: int = 200, **headers: str) -> Reply:
    """Reply with JSON or with these exact bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return lambda handler: handler.answer(
        code, data, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def page(*items: object, rv: str | None, more: str | None = None) -> Reply:
    """Reply with one page of a list."""
    return answer({"metadata": {"resourceVersion": rv, "continue": more or ""}, "items": list(items)})


def status(code: int, reason: str, message: str = "no", **headers: str) -> Reply:
    """Reply with an error status."""
    return answer({"kind": "Status", "code": code, "reason": reason, "message": message}, code, **headers)


def silence(handler: _Handler) -> None:
    """Start a watch without events."""
    handler.begin()
    handler.server.api.closing.wait()


def no_answer(handler: _Handler) -> None:
    """Accept the request and never respond."""
    handler.server.api.closing.wait()


def stream(*pieces: bytes, then: str = "silence") -> Reply:
    """Stream a watch. `then` is silence, end (a server-side timeout) or drop."""

    def play(handler: _Handler) -> None:
        handler.begin()
        for piece in pieces:
            handler.send(piece)
        if then == "silence":
            handler.server.api.closing.wait()
        elif then == "end":
            handler.wfile.write(b"0\r\n\r\n")
        else:
            reset(handler.connection)
            handler.close_connection = True

    return play


# Objects


def event(kind: str, item: object) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": item}, ensure_ascii=False).encode() + b"\n"


def bookmark(rv: str) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": rv, "creationTimestamp": None}})


def gone() -> bytes:
    return event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"})


def pod(name: str, rv: int | str, uid: str | None = None, **fields: object) -> dict[str, Any]:
    """A small pod."""
    meta = {"name": name, "namespace": "lab", "uid": uid or f"uid-{name}", "resourceVersion": str(rv)}
    return {"metadata": meta, "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Running"}, **fields}


def cut(line: bytes, share: float = 0.5) -> bytes:
    """First part of a line."""
    return line[: int(len(line) * share)]


def names(items: Iterable[Any]) -> dict[str, str]:
    """Contents of a store as name -> version."""
    return {item.name: item.resource_version for item in items}
