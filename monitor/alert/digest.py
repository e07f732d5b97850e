"""The daily or weekly summary: when it is due, and what it says. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from monitor.alert.model import (
    SEVERITY_RANK,
    Alert,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
    Summary,
)
from monitor.alert.store import AlertEvent, AlertEventKind
from monitor.base.cron import fires_in
from monitor.facts.findings import Severity

GROUP = "digest"
MAX_SUBJECTS = 20  # subjects of what still fires that go along; a message shows the first few


@dataclass(frozen=True)
class DigestSchedule:
    """A summary is sent to these receivers at each time of the schedule."""

    cron: str
    timezone: str
    receivers: tuple[str, ...]


def is_due(digest: DigestSchedule, last: float, now: float) -> bool:
    """Given when the last summary was made, return whether another is due. Several that were missed are one."""
    return fires_in(digest.cron, digest.timezone, last, now)


def digest_notifications(
    digest: DigestSchedule, events: Iterable[AlertEvent], alerts: Iterable[Alert], since: float, now: float
) -> tuple[Notification, ...]:
    """Given what happened since the last one and the alerts as they are, return a summary for each receiver."""
    happened = [event for event in events if since <= event.at <= now]
    firing = sorted((alert for alert in alerts if alert.phase is Phase.FIRING), key=_order)
    summary = Summary(
        since=since,
        until=now,
        fired=_by_rule(happened, AlertEventKind.FIRED),
        resolved=_by_rule(happened, AlertEventKind.RESOLVED),
        still_firing=len(firing),
    )
    subjects = tuple(_subject(alert) for alert in firing[:MAX_SUBJECTS])
    return tuple(
        Notification(
            id=hashlib.sha256(f"{GROUP} {receiver} {since} {now}".encode()).hexdigest()[:24],
            receiver=receiver,
            group=GROUP,
            reason=NotificationReason.REPEAT,
            severity=Severity.INFO,
            at=now,
            subjects=subjects,
            summary=summary,
        )
        for receiver in digest.receivers
    )


def _by_rule(events: Iterable[AlertEvent], what: AlertEventKind) -> dict[str, int]:
    return dict(Counter(event.alert.finding.rule for event in events if event.what is what))


def _order(alert: Alert) -> tuple[int, float, str]:
    return SEVERITY_RANK[alert.finding.severity], alert.since, alert.fingerprint


def _subject(alert: Alert) -> NotificationSubject:
    return NotificationSubject(
        fingerprint=alert.fingerprint,
        finding=alert.finding,
        phase=alert.phase,
        since=alert.since,
        flapping=alert.flapping,
        fresh=False,
    )
