"""Daily or weekly digest: when it is due, and its content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from monitor.alert.model import (
    SEVERITY_RANK,
    Alert,
    Notification,
    NotificationReason,
    Phase,
    Summary,
    notification_id,
    subject_of,
)
from monitor.alert.store import AlertEvent, AlertEventKind
from monitor.base.cron import fires_in
from monitor.facts.findings import Severity

GROUP = "digest"
MAX_SUBJECTS = 20  # firing alerts in a digest; a message shows only the first few


@dataclass(frozen=True)
class DigestSchedule:
    """Times and receivers of the digest."""

    cron: str
    timezone: str
    receivers: tuple[str, ...]


def is_due(schedule: DigestSchedule, last: float, now: float) -> bool:
    """Whether a digest is due after the one at `last`; several missed ones count once."""
    return fires_in(schedule.cron, schedule.timezone, last, now)


def digest_notifications(
    schedule: DigestSchedule, events: Iterable[AlertEvent], alerts: Iterable[Alert], since: float, now: float
) -> tuple[Notification, ...]:
    """Digest of the period since `since`, one notification per receiver."""
    in_period = [event for event in events if since <= event.at <= now]
    firing = sorted((alert for alert in alerts if alert.phase is Phase.FIRING), key=_order)
    summary = Summary(
        since=since,
        until=now,
        fired=_by_rule(in_period, AlertEventKind.FIRED),
        resolved=_by_rule(in_period, AlertEventKind.RESOLVED),
        still_firing=len(firing),
    )
    subjects = tuple(subject_of(alert, alert.phase, fresh=False) for alert in firing[:MAX_SUBJECTS])
    return tuple(
        Notification(
            id=notification_id(f"{GROUP} {receiver} {since} {now}"),
            receiver=receiver,
            group=GROUP,
            reason=NotificationReason.REPEAT,
            severity=Severity.INFO,
            at=now,
            subjects=subjects,
            summary=summary,
        )
        for receiver in schedule.receivers
    )


def _by_rule(events: Iterable[AlertEvent], kind: AlertEventKind) -> dict[str, int]:
    return dict(Counter(event.alert.finding.rule for event in events if event.what is kind))


def _order(alert: Alert) -> tuple[int, float, str]:
    return SEVERITY_RANK[alert.finding.severity], alert.since, alert.fingerprint
