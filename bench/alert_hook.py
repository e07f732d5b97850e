"""One loopback server that receives the messages of all three."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ALERTS = ("ImagePull", "ImagePullFails")  # alert names in gpuwarden and in the Prometheus rule

Arrivals = dict[tuple[str, str], float]
Note = Callable[[str, dict[str, Any]], None]  # of a path and an alert


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

    def note(path: str, alert: dict[str, Any]) -> None:
        labels = alert["labels"]
        if alert["status"] == "firing" and labels["alertname"] in ALERTS:
            arrivals.setdefault((path, labels["pod"]), time.monotonic())

    with serve(note) as url:
        yield Hook(url, arrivals)


@contextmanager
def serve(note: Note) -> Iterator[str]:
    """Note every alert that is posted until the context exits; yields the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(note))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="hook", daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(note: Note) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            for alert in json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"]:
                note(self.path.removeprefix("/"), alert)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silence the request log."""

    return Handler
