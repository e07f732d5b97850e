"""Whether there is something to tell one receiver about one group, why, and what. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from monitor.alert.inhibition import Inhibition
from monitor.alert.model import (
    SEVERITY_RANK,
    Alert,
    Notification,
    NotificationLogEntry,
    NotificationReason,
    NotificationSubject,
    Phase,
    worst_severity,
)
from monitor.alert.routes import Route
from monitor.facts.findings import Severity


@dataclass
class GroupState:
    """How one receiver stands to one group. Each alert is in one place only.

    `firing` may be told now. `over` were told and are resolved. `beside` were told and are not over, but are now
    explained by something else, or come and go just now: no reason for a message, but part of it. `kept` were told,
    and nothing may be said about them now.
    """

    receiver: str
    group: str
    told: NotificationLogEntry | None = None
    firing: dict[str, Alert] = field(default_factory=dict)
    over: dict[str, Alert] = field(default_factory=dict)
    beside: dict[str, Alert] = field(default_factory=dict)
    kept: dict[str, Severity] = field(default_factory=dict)
    routes: set[Route] = field(default_factory=set)


def needs_update(
    told: NotificationLogEntry | None, firing: Mapping[str, Alert], over: Collection[str], route: Route, now: float
) -> NotificationReason | None:
    """Given what was told, what fires and may be told, and which of the told are over, return the reason to tell."""
    if told is None or not told.firing:
        return NotificationReason.NEW if firing and now - _first_fired(firing) >= route.group_wait else None
    untold = [alert for fingerprint, alert in firing.items() if fingerprint not in told.firing]
    left = [severity for fingerprint, severity in told.firing.items() if fingerprint not in over]
    if any(_worse(alert, told.firing) for alert in firing.values()):
        return NotificationReason.WORSE
    if Severity.CRITICAL not in left and any(alert.finding.severity is Severity.CRITICAL for alert in untold):
        return NotificationReason.MORE if Severity.CRITICAL in told.firing.values() else NotificationReason.WORSE
    if over and not left and not firing:
        return NotificationReason.RESOLVED
    waited = now - told.at
    if waited >= route.group_interval and (untold or over):
        return NotificationReason.MORE if untold else NotificationReason.RESOLVED
    return NotificationReason.REPEAT if firing and waited >= route.repeat else None


def notification(standing: GroupState, reason: NotificationReason, inhibition: Inhibition, now: float) -> Notification:
    """Given how things stand and why it is told, return what is told."""
    there = standing.firing | standing.beside
    told = standing.told.firing if standing.told is not None else {}
    subjects = [_subject(alert, Phase.FIRING, _is_news(alert, told)) for alert in standing.firing.values()]
    subjects += [_subject(alert, Phase.FIRING, fresh=False) for alert in standing.beside.values()]
    subjects += [_subject(alert, Phase.RESOLVED, fresh=True) for alert in standing.over.values()]
    subjects.sort(key=_order)
    severities = [alert.finding.severity for alert in there.values()] or [told[own] for own in standing.over]
    users = {alert.finding.labels["user"] for alert in there.values() if "user" in alert.finding.labels}
    return Notification(
        id=_id(standing, reason, subjects, now),
        receiver=standing.receiver,
        group=standing.group,
        reason=reason,
        severity=worst_severity(severities),
        at=now,
        subjects=tuple(subjects),
        symptoms=inhibition.symptoms(there),
        users=tuple(sorted(users)),
    )


def log_entry_after(standing: GroupState, now: float) -> NotificationLogEntry | None:
    """Return what the receiver knows once it is told; None if nothing is left."""
    there = standing.firing | standing.beside
    firing = standing.kept | {own: alert.finding.severity for own, alert in there.items()}
    return (
        NotificationLogEntry(receiver=standing.receiver, group=standing.group, at=now, firing=firing)
        if firing
        else None
    )


def _first_fired(firing: Mapping[str, Alert]) -> float:
    return min(alert.first_seen_at if alert.fired_at is None else alert.fired_at for alert in firing.values())


def _worse(alert: Alert, told: Mapping[str, Severity]) -> bool:
    before = told.get(alert.fingerprint)
    return before is not None and SEVERITY_RANK[alert.finding.severity] < SEVERITY_RANK[before]


def _is_news(alert: Alert, told: Mapping[str, Severity]) -> bool:
    return alert.fingerprint not in told or _worse(alert, told)


def _subject(alert: Alert, phase: Phase, fresh: bool) -> NotificationSubject:
    return NotificationSubject(
        fingerprint=alert.fingerprint,
        finding=alert.finding,
        phase=phase,
        since=alert.since,
        resolved_at=alert.resolved_at if phase is Phase.RESOLVED else None,
        flapping=alert.flapping,
        fresh=fresh,
    )


def _order(subject: NotificationSubject) -> tuple[bool, bool, int, float, str]:
    """Fresh before known; of those, what fires before what is over; then the worst, then the oldest."""
    over, rank = subject.phase is Phase.RESOLVED, SEVERITY_RANK[subject.finding.severity]
    return (not subject.fresh, over, rank, subject.since, subject.finding.key)


def _id(standing: GroupState, reason: NotificationReason, subjects: list[NotificationSubject], now: float) -> str:
    """Return what a notification is known by: the same for the same decision, another for any other."""
    before = repr(standing.told.at) if standing.told is not None else ""
    parts = [standing.receiver, standing.group, reason.value, repr(now), before]
    parts += [f"{subject.fingerprint} {subject.phase} {subject.finding.severity}" for subject in subjects]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]
