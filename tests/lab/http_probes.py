"""Requests to local servers, answered or not."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path

ANSWER_LIMIT = 3.0


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_LIMIT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(ANSWER_LIMIT)
        self.sock.connect(str(self._path))


def answers(connection: http.client.HTTPConnection, path: str, token: str | None = None) -> bool:
    """Whether a GET of `path` returns 200."""
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
