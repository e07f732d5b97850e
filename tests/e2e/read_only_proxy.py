"""A proxy in front of an API server that passes on what writes nothing, and records everything else."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import config

CHUNK_BYTES = 1 << 16
TIMEOUT_SECONDS = 120.0
# A review is a question: the API server answers the POST and stores nothing.
_REVIEW = re.compile(
    r"/apis/(authorization\.k8s\.io/\w+/selfsubjectaccessreviews|authentication\.k8s\.io/\w+/selfsubjectreviews)"
)
_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: proxy, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: nobody, user: {{}}}}]
contexts: [{{name: proxy, context: {{cluster: proxy, user: nobody}}}}]
current-context: proxy
"""


@dataclass
class ProxiedRequests:
    """Requests as "METHOD PATH": those passed on, and the refused ones, which would have written."""

    reads: list[str] = field(default_factory=list)
    reviews: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)


class _ProxyServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    requests: ProxiedRequests
    api: Any
    responses: set[Any]  # of the API server, not yet read to their end

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect: a watch ends that way."""


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _ProxyServer

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, requests = self.path.partition("?")[0], self.server.requests
        asked = f"{self.command} {path}"
        if self.command in ("GET", "HEAD"):
            requests.reads.append(asked)
        elif self.command == "POST" and _REVIEW.fullmatch(path):
            requests.reviews.append(asked)
        else:
            requests.writes.append(asked)
            self.send_error(403, "this proxy passes on no write")
            return
        self._forward(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _forward(self, body: bytes) -> None:
        settings = self.server.api.configuration
        headers = {
            name: self.headers[name] for name in ("Accept", "Content-Type", "User-Agent") if name in self.headers
        }
        for setting in settings.auth_settings().values():
            headers[setting["key"]] = setting["value"]
        response = self.server.api.rest_client.pool_manager.request(
            self.command,
            settings.host + self.path,
            body=body or None,
            headers=headers,
            timeout=urllib3.Timeout(TIMEOUT_SECONDS),
            retries=False,
            preload_content=False,
        )
        self.server.responses.add(response)
        try:
            with contextlib.closing(response):
                self._reply(response)
        finally:
            self.server.responses.discard(response)

    def _reply(self, response: Any) -> None:
        self.send_response_only(response.status)
        for name in ("Content-Type", "Date"):
            if name in response.headers:
                self.send_header(name, response.headers[name])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while chunk := response.read1(CHUNK_BYTES):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is inherited
        """Silence the request log."""


@contextmanager
def read_only_proxy(kubeconfig: Path, folder: Path) -> Iterator[tuple[Path, ProxiedRequests]]:
    """Kubeconfig of a proxy that uses the credentials of `kubeconfig`, and the requests that it received."""
    api: Any = config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]  # theirs
    server = _ProxyServer(("127.0.0.1", 0), _ProxyHandler)
    server.api, server.requests, server.responses = api, ProxiedRequests(), set()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    path = folder / "proxy-kubeconfig"
    path.write_text(_KUBECONFIG.format(port=server.server_port))
    try:
        yield path, server.requests
    finally:
        server.shutdown()
        server.server_close()
        for response in tuple(server.responses):  # watches, which the API server would keep open for minutes
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                response.shutdown()
        thread.join(60)
        api.close()
