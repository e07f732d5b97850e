"""One loopback server that receives the messages of all three."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ALERTS = ("ImagePull", "ImagePullFails")  # alert names in gpuwarden and in the Prometheus rule

Arrivals = dict[tuple[str, str], float]


class Hook:
    """Records the monotonic time of the first message about a pod at each path."""

    def __init__(self, url: str, arrivals: Arrivals) -> None:
        self.url = url
        self._arrivals = arrivals

    def address(self, who: str) -> str:
        return f"{self.url}/{who}"

    def arrived(self, who: str, pod: str) -> float | None:
        return self._arrivals.get((who, pod))


@contextmanager
def hook() -> Iterator[Hook]:
    """Serve until the context exits."""
    arrivals: Arrivals = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(arrivals))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="hook", daemon=True).start()
    try:
        yield Hook(f"http://127.0.0.1:{server.server_port}", arrivals)
    finally:
        server.shutdown()
        server.server_close()


def _handler(arrivals: Arrivals) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body, now = self.rfile.read(int(self.headers["Content-Length"])), time.monotonic()
            for alert in json.loads(body)["alerts"]:
                labels = alert["labels"]
                if alert["status"] == "firing" and labels["alertname"] in ALERTS:
                    arrivals.setdefault((self.path.removeprefix("/"), labels["pod"]), now)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silence the request log."""

    return Handler
