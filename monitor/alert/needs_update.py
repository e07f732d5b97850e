"""Deduplication for one receiver and one group: whether a notification is needed, why, and its content."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from math import inf

from monitor.alert.inhibition import Inhibition
from monitor.alert.model import (
    SEVERITY_RANK,
    Alert,
    Notification,
    NotificationLogEntry,
    NotificationReason,
    NotificationSubject,
    Phase,
    has_escalated,
    notification_id,
    subject_of,
    worst_severity,
)
from monitor.alert.routes import Route
from monitor.facts.findings import Severity


@dataclass
class GroupState:
    """Alerts of a group as seen by one receiver; each alert is in exactly one of the collections.

    `firing` may be sent now. The others were sent before: `resolved` since then; `listed` are still present but
    inhibited or momentarily absent, so that they appear in a message without being a reason for one; `muted` must not
    be mentioned now.
    """

    receiver: str
    group: str
    logged: NotificationLogEntry | None = None
    firing: dict[str, Alert] = field(default_factory=dict)
    resolved: dict[str, Alert] = field(default_factory=dict)
    listed: dict[str, Alert] = field(default_factory=dict)
    muted: dict[str, Severity] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)


def needs_update(
    logged: NotificationLogEntry | None,
    firing: Mapping[str, Alert],
    resolved: Collection[str],
    route: Route,
    now: float,
) -> NotificationReason | None:
    """Reason to notify, given the last notification, what fires, and which of the logged alerts have resolved."""
    if logged is None or not logged.firing:
        return NotificationReason.NEW if firing and now - _first_fired(firing) >= route.group_wait else None
    added = [alert for fingerprint, alert in firing.items() if fingerprint not in logged.firing]
    remaining = [severity for fingerprint, severity in logged.firing.items() if fingerprint not in resolved]
    if any(_escalated(alert, logged.firing) for alert in firing.values()):
        return NotificationReason.WORSE
    if Severity.CRITICAL not in remaining and any(alert.finding.severity is Severity.CRITICAL for alert in added):
        return NotificationReason.MORE if Severity.CRITICAL in logged.firing.values() else NotificationReason.WORSE
    if resolved and not remaining and not firing:
        return NotificationReason.RESOLVED
    elapsed = now - logged.at
    if elapsed >= route.group_interval and (added or resolved):
        return NotificationReason.MORE if added else NotificationReason.RESOLVED
    return NotificationReason.REPEAT if firing and elapsed >= route.repeat else None


def next_update_at(
    logged: NotificationLogEntry | None, firing: Mapping[str, Alert], resolved: Collection[str], route: Route
) -> float:
    """Time at which `needs_update` may give a reason, while alerts and log stay as they are."""
    if logged is None or not logged.firing:
        return _first_fired(firing) + route.group_wait if firing else inf
    changed = bool(resolved) or not logged.firing.keys() >= firing.keys()
    return min(logged.at + route.group_interval if changed else inf, logged.at + route.repeat if firing else inf)


def notification(group: GroupState, reason: NotificationReason, inhibition: Inhibition, now: float) -> Notification:
    """Notification about the current state of a group."""
    present = group.firing | group.listed
    logged = group.logged.firing if group.logged is not None else {}
    subjects = [
        subject_of(alert, Phase.FIRING, fresh=fingerprint not in logged or _escalated(alert, logged))
        for fingerprint, alert in group.firing.items()
    ]
    subjects += [subject_of(alert, Phase.FIRING, fresh=False) for alert in group.listed.values()]
    subjects += [subject_of(alert, Phase.RESOLVED, fresh=True) for alert in group.resolved.values()]
    subjects.sort(key=_order)
    severities = [alert.finding.severity for alert in present.values()]
    users = {alert.finding.labels["user"] for alert in present.values() if "user" in alert.finding.labels}
    return Notification(
        id=_id(group, reason, subjects, now),
        receiver=group.receiver,
        group=group.group,
        reason=reason,
        severity=worst_severity(severities or [logged[fingerprint] for fingerprint in group.resolved]),
        at=now,
        subjects=tuple(subjects),
        symptoms=inhibition.symptoms(present),
        users=tuple(sorted(users)),
    )


def log_entry_after(group: GroupState, now: float) -> NotificationLogEntry | None:
    """Log entry after notifying the receiver; None if no alert of the group is left."""
    present = group.firing | group.listed
    firing = group.muted | {fingerprint: alert.finding.severity for fingerprint, alert in present.items()}
    if not firing:
        return None
    return NotificationLogEntry(receiver=group.receiver, group=group.group, at=now, firing=firing)


def _first_fired(firing: Mapping[str, Alert]) -> float:
    return min(alert.first_seen_at if alert.fired_at is None else alert.fired_at for alert in firing.values())


def _escalated(alert: Alert, logged: Mapping[str, Severity]) -> bool:
    return has_escalated(alert.fingerprint, alert.finding.severity, logged)


def _order(subject: NotificationSubject) -> tuple[bool, bool, int, float, str]:
    """Fresh before known, firing before resolved, then by severity and age."""
    resolved, rank = subject.phase is Phase.RESOLVED, SEVERITY_RANK[subject.finding.severity]
    return (not subject.fresh, resolved, rank, subject.since, subject.finding.key)


def _id(group: GroupState, reason: NotificationReason, subjects: list[NotificationSubject], now: float) -> str:
    """Id of a notification: equal for equal decisions only."""
    before = repr(group.logged.at) if group.logged is not None else ""
    parts = [f"{subject.fingerprint} {subject.phase} {subject.finding.severity}" for subject in subjects]
    return notification_id(group.receiver, group.group, reason.value, repr(now), before, *parts)
