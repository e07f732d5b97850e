"""An API server for access reviews and a few lists."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN = "kubernetes-token-of-somebody"


class FakeKube:
    """`forbidden` are denied rights such as `list events`; `lists` are the items of the list at each path."""

    def __init__(self, *forbidden: str, ahead: float = 0.0) -> None:
        self.forbidden = forbidden
        self.ahead = ahead
        self.groups = ["apps", "batch"]
        self.lists: dict[str, list[Any]] = {}
        self.reviewed: list[str] = []
        self.port = 0

    def kubeconfig(self, folder: Path) -> str:
        """Write a kubeconfig for this server and return its path."""
        path = folder / "kubeconfig"
        path.write_text(f"""
apiVersion: v1
kind: Config
clusters: [{{name: fake, cluster: {{server: "http://127.0.0.1:{self.port}"}}}}]
users: [{{name: someone, user: {{token: {TOKEN}}}}}]
contexts: [{{name: here, context: {{cluster: fake, user: someone}}}}]
current-context: here
""")
        return str(path)

    def get(self, path: str) -> tuple[int, Any]:
        if path == "/version":
            return 200, {"gitVersion": "v1.31.2"}
        if path == "/apis":
            return 200, {"groups": [{"name": name} for name in self.groups]}
        if path in self.lists:
            return 200, {"metadata": {"resourceVersion": "1"}, "items": self.lists[path]}
        return 404, {"kind": "Status", "reason": "NotFound", "message": "no"}

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        if path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
            return 201, {"status": {"userInfo": {"username": "system:serviceaccount:lab:gpuwarden"}}}
        if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
            attributes = body["spec"]["resourceAttributes"]
            resource = "/".join(filter(None, (attributes["resource"], attributes.get("subresource"))))
            right = f"{attributes['verb']} {'.'.join(filter(None, (resource, attributes.get('group'))))}"
            self.reviewed.append(right)
            return 201, {"status": {"allowed": right not in self.forbidden}}
        return 404, {"kind": "Status", "reason": "NotFound", "message": "no"}


@contextmanager
def serving(kube: FakeKube) -> Iterator[FakeKube]:
    """Serve inside the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(*kube.get(self.path.partition("?")[0]))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(*kube.post(self.path, body))

        def _answer(self, code: int, content: Any) -> None:
            data = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(time.time() + kube.ahead, usegmt=True)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is inherited
            """Keep the test output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    kube.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield kube
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
