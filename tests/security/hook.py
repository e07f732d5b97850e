"""A webhook receiver that remembers what it was sent."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.serving import Serving


class Hook(Serving):
    """Accepts every message, the first one after `first_delay` seconds and the others after `delay`."""

    def __init__(self, delay: float = 0.0, first_delay: float = 0.0) -> None:
        self.messages: list[dict[str, Any]] = []
        self.begun = 0
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.begun += 1
                hook.closing.wait(first_delay if hook.begun == 1 else delay)
                hook.messages.append(json.loads(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # theirs
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        super().__init__(server)
        self.url = f"http://127.0.0.1:{server.server_address[1]}/"

    def groups(self, status: str) -> list[dict[str, str]]:
        """Group labels of the messages with a status, in the order of their arrival."""
        return [message["groupLabels"] for message in self.messages if message["status"] == status]
