"""An HTTP(S) server with scripted responses that records requests and can misbehave."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support import need
from tests.support.serving import Serving

Behaviour = Callable[["Handler"], None]
DRIP = 0.05  # seconds between two bytes of a trickling server


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.time)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class LocalServer(Serving):
    """Serves until the context exits. `behave` overrides `answer`."""

    def __init__(self, behave: Behaviour | None = None, certificate: tuple[Path, Path] | None = None) -> None:
        self.behave = behave
        self.asked: list[Asked] = []
        self._server = _Server(("127.0.0.1", 0), Handler)
        super().__init__(self._server, 0.005)
        self._server.local = self
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.port: int = self._server.server_port
        self.base = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """Status and body as the real service would return them; the body is sent as JSON unless it is bytes."""
        return 200, b"ok"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    local: LocalServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect or reject the certificate: tests do that on purpose."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        self._take("POST")

    def do_GET(self) -> None:
        self._take("GET")

    def _take(self, method: str) -> None:
        local, parts = self.server.local, urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(method, parts.path, dict(parse_qsl(parts.query)), headers, body)
        local.asked.append(asked)
        self.close_connection = True
        if local.behave is not None:
            local.behave(self)
        else:
            self.say(*local.answer(asked))

    def say(self, status: int, body: Any = b"", **headers: str) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def drip(self, text: bytes) -> None:
        """Send byte by byte until the client disconnects."""
        while not self.server.local.closing.wait(DRIP):
            self.connection.sendall(text[:1])
            text = text[1:] or text

    def reset(self) -> None:
        """Close the connection with RST, like a machine that crashed and rebooted."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is inherited
        """Silence the request log."""


def says(status: int, body: Any = b"", **headers: str) -> Behaviour:
    return lambda handler: handler.say(status, body, **headers)


def is_silent(handler: Handler) -> None:
    handler.server.local.closing.wait(600)


def trickles_its_headers(handler: Handler) -> None:
    handler.drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 100_000)


def trickles_its_body(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    handler.drip(b"a" * 100_000)


def hangs_up(handler: Handler) -> None:
    handler.connection.close()


def resets(handler: Handler) -> None:
    handler.reset()


def resets_in_the_middle(handler: Handler) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"errcode"')
    handler.wfile.flush()
    handler.reset()


def speaks_no_http(handler: Handler) -> None:
    handler.wfile.write(b"220 mail.example.com ESMTP\r\n")


def echoes(handler: Handler) -> None:
    """Refuse and echo the whole request including secrets, as some proxies and debug pages do."""
    handler.say(400, f"refused: {handler.path} {dict(handler.headers)}".encode())


def make_certificate(folder: Path, name: str = "server") -> tuple[Path, Path]:
    """Self-signed certificate for 127.0.0.1 and its key, as files."""
    need(shutil.which("openssl") is not None, "openssl")
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    return certificate, key
