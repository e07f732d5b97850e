"""An HTTP server on a unix socket with scripted responses, for what no real engine returns."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    block_on_close = False


@dataclass
class Scripted:
    """Responses by path and query: a body or a status, else 404. Targets in `stuck` wait for `release`."""

    socket: str
    answers: dict[str, bytes | int] = field(default_factory=dict)
    stuck: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    def answer(self, target: str) -> tuple[int, bytes]:
        self.asked.append(target)
        if target in self.stuck:
            self.released.wait(120)
        given = self.answers.get(target, 404)
        return (given, b'{"message":"as scripted"}') if isinstance(given, int) else (200, given)


@contextlib.contextmanager
def scripted_engine(directory: Path, answers: dict[str, bytes | int]) -> Iterator[Scripted]:
    """Serve `answers` on a socket in `directory`."""
    script = Scripted(str(directory / "scripted.sock"), answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body = script.answer(self.path)
            with contextlib.suppress(BrokenPipeError):  # the client may have disconnected
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def address_string(self) -> str:
            return "unix"

        def log_message(self, *_: Any) -> None:
            pass

    with _Server(script.socket, Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield script
        finally:
            script.released.set()
            server.shutdown()
            thread.join()
