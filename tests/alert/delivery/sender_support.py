"""Findings, notifications, and a receiver behind a real HTTP server, for tests of storing and sending."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from monitor.alert.model import Batch, Notification, NotificationReason, NotificationSubject, Phase
from monitor.alert.receivers.base import DeliveryError, RateLimit
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

Answer = Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]


def finding(node: str = "n1", rule: str = "disk-full", severity: str = "warning", **more: Any) -> Finding:
    given: dict[str, Any] = {"cause": "logs", "labels": {"node": node}, "headline": Text(key="x")}
    return Finding(rule=rule, severity=Severity(severity), **(given | more))


def subject(node: str = "n1", phase: Phase = Phase.FIRING, **more: Any) -> NotificationSubject:
    given: dict[str, Any] = {"finding": finding(node), "since": 1.0}
    return NotificationSubject(fingerprint=node, phase=phase, **(given | more))


def notification(
    group: str = "g", *subjects: NotificationSubject, reason: str = "new", severity: str = "warning", **more: Any
) -> Notification:
    given: dict[str, Any] = {"id": f"{group}-{reason}", "receiver": "bot", "at": 1.0}
    return Notification(
        group=group,
        reason=NotificationReason(reason),
        severity=Severity(severity),
        subjects=subjects or (subject(),),
        **(given | more),
    )


def content(batch: Batch) -> dict[str, Any]:
    """Parts of a batch that the tests check, as JSON."""
    return {
        "id": batch.id,
        "notifications": [
            {
                "id": each.id,
                "at": each.at,
                "group": each.group,
                "reason": each.reason,
                "severity": each.severity,
                "subjects": [[one.finding.labels.get("node"), one.phase] for one in each.subjects],
            }
            for each in batch.notifications
        ],
    }


@dataclass
class HttpReceiver:
    """A receiver that posts JSON; `errcode` in the answer is the result, as with the Chinese bots."""

    name: str
    port: int
    pace: RateLimit = field(default_factory=RateLimit)
    max_notifications: int = 20
    kind: str = "test"
    extra: dict[str, Any] = field(default_factory=dict)

    def capacity(self, notifications: Sequence[Notification]) -> int:
        return min(self.max_notifications, len(notifications))

    def deliver(self, batch: Batch) -> str:
        try:
            status, answer = self._post({**content(batch), **self.extra})
        except (OSError, http.client.HTTPException) as error:
            raise DeliveryError(f"no answer: {type(error).__name__}", retryable=True) from error
        if answer.get("errcode"):
            raise DeliveryError(str(answer["errmsg"]), retryable=answer["errcode"] == 45009, after=answer.get("after"))
        if status != 200:
            raise DeliveryError(f"answered {status}", retryable=status >= 500)
        return str(answer["errmsg"])

    def _post(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", f"/{self.name}", json.dumps(body))
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
            return response.status, answer


@dataclass(frozen=True)
class Arrival:
    """A message that reached the server, with the time of its arrival."""

    at: float
    to: str
    body: dict[str, Any]
    status: int
    errcode: int

    @property
    def id(self) -> str:
        return str(self.body["id"])

    @property
    def groups(self) -> list[str]:
        return [each["group"] for each in self.body["notifications"]]


def fine(_: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    return 200, {"errcode": 0, "errmsg": "ok"}


class Inbox:
    """A server that accepts one message at a time, in the order of connection."""

    def __init__(self, answer: Answer = fine) -> None:
        self.arrivals: list[Arrival] = []
        self.answer = answer
        self.port = 0

    @contextlib.contextmanager
    def served(self) -> Iterator[Inbox]:
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                with contextlib.suppress(ValueError, OSError):  # the client was killed during the request
                    body = json.loads(raw)
                    at = time.time()
                    status, answer = inbox.answer(body)
                    errcode = int(answer.get("errcode", 0))
                    inbox.arrivals.append(Arrival(at, self.path.strip("/"), body, status, errcode))
                    data = json.dumps(answer).encode()
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                return

        server = _Quiet(("127.0.0.1", 0), Handler)
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join(60)

    def taken(self) -> list[Arrival]:
        """Messages that were accepted."""
        return [each for each in list(self.arrivals) if each.status == 200 and not each.errcode]


class _Quiet(HTTPServer):
    request_queue_size = 64

    def handle_error(self, *_: object) -> None:
        """Ignore connections that a killed client resets."""
