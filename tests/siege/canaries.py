"""Canaries: services that go down and pods whose pull fails, and when the webhook hears of each."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import msgspec

from tests.siege.cluster import CANARIES
from tests.support.receivers.http_server import Asked, LocalServer, says

EVERY_SECONDS = 15.0
DOWN_SECONDS = 10.0  # a canary that is reported later is late
FAILURES = 3  # of one service: a fourth within half an hour would count as flapping


class CanaryAlert(msgspec.Struct):
    """A failure: seconds since the start of the siege, and until its notification, if there was one."""

    kind: str
    name: str
    at: float
    seconds: float | None = None


class CanaryHook(LocalServer):
    """The only receiver: records when each canary was first reported, and the size of all bodies."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: dict[str, list[float]] = {}
        self.messages = 0
        self.largest_bytes = 0

    def answer(self, asked: Asked) -> tuple[int, Any]:
        now = time.monotonic()
        for alert in asked.json["alerts"]:
            labels = alert["labels"]
            name = labels.get("service", "") if labels["alertname"] == "ServiceDown" else labels.get("pod", "")
            if alert["status"] == "firing":
                self.heard.setdefault(name, []).append(now)
        self.messages += 1
        self.largest_bytes = max(self.largest_bytes, len(asked.body))
        self.asked.clear()
        return 200, b"ok"

    def heard_since(self, name: str, began: float) -> float | None:
        """When a canary that failed at a time was first reported."""
        return next((at for at in self.heard.get(name, ()) if at >= began), None)


class Services:
    """Enough services for canaries during a number of seconds."""

    def __init__(self, seconds: float) -> None:
        self._servers = [LocalServer() for _ in range(max(8, math.ceil(seconds / EVERY_SECONDS / FAILURES)))]

    @contextmanager
    def served(self) -> Iterator[None]:
        with ExitStack() as stack:
            for server in self._servers:
                stack.enter_context(server)
            yield

    def config(self) -> list[dict[str, str]]:
        """Settings `daemon.services`."""
        return [
            {"name": _name(number), "url": f"{server.base}/", "interval": "1s", "limit": "2s"}
            for number, server in enumerate(self._servers)
        ]

    def fail(self, turn: int) -> str:
        """Take a service down, and return its name."""
        number = turn % len(self._servers)
        self._servers[number].behave = says(503)
        return _name(number)

    def recover(self) -> None:
        """Bring all services back."""
        for server in self._servers:
            server.behave = None
            server.asked.clear()


def _name(number: int) -> str:
    return f"service-{number}"


class CanaryKeeper:
    """Makes one canary of each kind fail every EVERY_SECONDS."""

    def __init__(self, services: Services, hook: CanaryHook, fail_pod: Callable[[str], None],
                 remove_pod: Callable[[str], None]) -> None:  # fmt: skip
        self._services = services
        self._hook = hook
        self._fail_pod = fail_pod
        self._remove_pod = remove_pod
        self.canaries: list[CanaryAlert] = []

    def keep(self, began: float, seconds: float, stopping: threading.Event) -> None:
        """Let canaries fail and recover; the last one has time to be reported."""
        for turn in range(int(seconds / EVERY_SECONDS)):
            if stopping.wait(max(0.0, began + turn * EVERY_SECONDS - time.monotonic())):
                return
            pod = f"{CANARIES}-{turn}"
            failed = time.monotonic()
            names = {"service": self._services.fail(turn), "pod": pod}
            self._fail_pod(pod)
            stopping.wait(max(0.0, failed + DOWN_SECONDS + 2 - time.monotonic()))
            self._services.recover()
            self._remove_pod(pod)
            for kind, name in names.items():
                at = self._hook.heard_since(name, failed)
                self.canaries.append(CanaryAlert(kind, name, failed - began, None if at is None else at - failed))
