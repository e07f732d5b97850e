"""Receivers, and a proxy in front of an agent: each can be made to fail or to forge data."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from tests.chaos.ledger import Ledger, Ours, Told
from tests.support.command import get
from tests.support.receivers.http_server import Asked, Handler, LocalServer

Forgery = Callable[[bytes], bytes]


class Hook(LocalServer):
    """A webhook that records accepted messages in a ledger if they are about one of `ours`."""

    def __init__(self, ledger: Ledger, ours: Ours) -> None:
        super().__init__()
        self._ours = ours
        self._ledger = ledger
        self._writing = threading.Lock()

    def answer(self, asked: Asked) -> tuple[int, Any]:
        self._take(asked)
        return 200, b"ok"

    def take_and_reset(self, handler: Handler) -> None:
        """Accept a message and reset the connection instead of responding."""
        self._take(self.asked[-1])
        handler.reset()

    def _take(self, asked: Asked) -> None:
        body = asked.json
        with self._writing:
            for alert in body["alerts"]:
                labels = alert["labels"]
                if not self._ours(labels):
                    continue
                self._ledger.told.append(
                    Told(
                        at=time.time(),
                        message=asked.headers.get("x-gpuwarden-id", "?"),
                        group=body["groupKey"],
                        firing=alert["status"] == "firing",
                        alert=labels["alertname"],
                        labels=labels,
                        since=alert["startsAt"],
                    )
                )


class Forger(LocalServer):
    """A proxy between daemon and agent; `forge` changes the agent's response."""

    def __init__(self, agent: str) -> None:
        super().__init__()
        self._agent = agent
        self.forge: Forgery | None = None
        self.target = f"127.0.0.1:{self.port}"

    def answer(self, asked: Asked) -> tuple[int, Any]:
        self.asked.clear()  # polled twice a second
        try:
            status, _, body = get(f"http://{self._agent}{asked.path}")
        except OSError:
            return 502, b""
        forge = self.forge
        return status, forge(body.encode()) if forge and asked.path == "/v1/snapshot" else body.encode()
