"""Batches as the sender delivers them, and receivers on loopback."""

from __future__ import annotations

import time
from typing import Any

from monitor.alert.model import Batch, Notification, NotificationReason, NotificationSubject, Phase, fingerprint_of
from monitor.alert.receivers.base import Receiver, ReceiverSettings
from monitor.alert.receivers.registry import build
from monitor.base.http import RequestError
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

GIB = 1024**3


def finding(mount: str = "/data", severity: Severity = Severity.CRITICAL, **labels: str) -> Finding:
    return Finding(
        rule="disk-full",
        severity=severity,
        cause="images",
        labels={"node": "gpu1", "mount": mount, **labels},
        headline=_note("disk-full.images", place="gpu1", mount=mount, share=0.97, available=3 * GIB, bytes=702 * GIB),
        evidence=(_note("disk-space", used=866 * GIB, size=927 * GIB, available=3 * GIB),),
        advice=(_note("disk-full.images.advice", node="gpu1"),),
    )


def _note(key: str, **values: str | float) -> Text:
    return Text(key=key, values=values)


def subject(given: Finding | None = None, phase: Phase = Phase.FIRING, **more: Any) -> NotificationSubject:
    given = given or finding()
    values = {"since": 1_700_000_000.0, "resolved_at": 1_700_000_600.0 if phase is Phase.RESOLVED else None} | more
    return NotificationSubject(fingerprint=fingerprint_of(given), finding=given, phase=phase, **values)


def notification(*subjects: NotificationSubject, users: tuple[str, ...] = (), **more: Any) -> Notification:
    subjects = subjects or (subject(),)
    values: dict[str, Any] = {
        "reason": NotificationReason.NEW,
        "severity": subjects[0].finding.severity,
        "at": time.time(),
    } | more
    return Notification(id="n1", receiver="r", group="DiskFull|cause=images", subjects=subjects, users=users, **values)


def batch(*notifications: Notification, at: float | None = None, id: str = "batch-1") -> Batch:  # noqa: A002  # as the field is called
    return Batch(
        id=id, receiver="r", notifications=notifications or (notification(),), at=time.time() if at is None else at
    )


def receiver(kind: str, url: str = "", **more: Any) -> Receiver:
    given: dict[str, Any] = {"name": "ops", "kind": kind, "url": url, "timeout": 30.0}
    return build(ReceiverSettings(**(given | more)))


def refusal(to: Receiver, what: Batch | None = None) -> RequestError:
    """Error of a delivery that must fail."""
    try:
        answer = to.deliver(what or batch())
    except RequestError as error:
        return error
    raise AssertionError(f"it was delivered: {answer}")
