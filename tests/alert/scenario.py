"""Scenarios of alerts over time: findings in, notifications out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from monitor.alert.dispatcher import newly_notified
from monitor.alert.lifecycle import GROUP_BY, AlertTimings, advance
from monitor.alert.matchers import parse_matcher
from monitor.alert.model import Alert, AlertState, Notification, NotificationLogEntry, Phase, fingerprint_of
from monitor.alert.notify import NotifyDecision, decide
from monitor.alert.routes import NotifyPolicy, Route
from monitor.alert.silences import Silence
from monitor.alert.windows import QuietHours
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
NOON = 1_750_334_400.0  # Thursday 2025-06-19 12:00 UTC


def finding(
    node: str = "n1",
    severity: Severity = WARNING,
    *,
    rule: str = "disk-full",
    cause: str = "data",
    explained_by: Finding | None = None,
    held: bool = False,
    since: float | None = None,
    **labels: str,
) -> Finding:
    return Finding(
        rule=rule,
        severity=severity,
        cause=cause,
        labels={"node": node} | labels,
        headline=Text(key="x"),
        explained_by=None if explained_by is None else explained_by.key,
        held=held,
        since=since,
    )


class Scenario:
    """A sequence of evaluations. By default everything is sent to `wecom` immediately."""

    def __init__(
        self,
        policy: NotifyPolicy | None = None,
        timings: AlertTimings | None = None,
        group_by: tuple[str, ...] = GROUP_BY,
        now: float = NOON,
    ) -> None:
        self.policy = policy or NotifyPolicy(routes=(Route(("wecom",), group_wait=0.0),))
        self.timings = timings or AlertTimings()
        self.group_by = group_by
        self.now = now
        self.alerts: dict[str, Alert] = {}
        self.log: dict[tuple[str, str], NotificationLogEntry] = {}
        self.decision = NotifyDecision()

    def evaluate(self, *findings: Finding, after: float = 0.0) -> tuple[Notification, ...]:
        """Notifications of an evaluation `after` seconds later."""
        self.now += after
        self.alerts = advance(self.alerts, findings, self.timings, self.group_by, self.now)
        self.decision = decide(AlertState(self.alerts, self.log), self.policy, self.now)
        self.alerts |= newly_notified(self.alerts, self.decision.notifications)
        for key, entry in self.decision.log_changes.items():
            self.log.pop(key, None)
            if entry is not None:
                self.log[key] = entry
        for fingerprint in self.decision.forgotten:
            del self.alerts[fingerprint]
        return self.decision.notifications

    def notifies(self, *findings: Finding, after: float = 0.0) -> list[str]:
        """Notifications in short form: `new n1`, `more-subjects n2 +n1 -n3` (+ known, - resolved)."""
        return [short(each) for each in self.evaluate(*findings, after=after)]

    def phase(self, found: Finding) -> Phase | None:
        alert = self.alerts.get(fingerprint_of(found))
        return None if alert is None else alert.phase

    def restart(self) -> None:
        """Keep only what survives a restart."""
        self.alerts = msgspec.json.decode(msgspec.json.encode(self.alerts), type=dict[str, Alert])
        entries = msgspec.json.decode(msgspec.json.encode(list(self.log.values())), type=list[NotificationLogEntry])
        self.log = {(each.receiver, each.group): each for each in entries}


def short(notification: Notification) -> str:
    words = [notification.reason.value]
    for subject in notification.subjects:
        sign = "-" if subject.phase is Phase.RESOLVED else "" if subject.fresh else "+"
        words.append(sign + subject.finding.labels["node"])
    return " ".join(words)


N1, N2, N3 = (finding(node) for node in ("n1", "n2", "n3"))


def worse(found: Finding) -> Finding:
    return replace(found, severity=CRITICAL)


def policy(*routes: Route, **more: Any) -> NotifyPolicy:
    return NotifyPolicy(routes=routes or (Route(("wecom",), group_wait=0.0),), **more)


def silence(*matchers: str, until: float, start: float = 0.0) -> Silence:
    return Silence(
        id="s",
        matchers=tuple(parse_matcher(each) for each in matchers),
        starts_at=start,
        ends_at=until,
        author="li",
        comment="",
    )


def night(clock: str) -> float:
    """Timestamp of a day and time in June 2025."""
    return datetime.fromisoformat(f"2025-06-{clock}").replace(tzinfo=UTC).timestamp()


QUIET = Route(("wecom",), group_wait=0.0, quiet=QuietHours("22:00", "08:00"))
