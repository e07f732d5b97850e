"""What an alert is, what is told about it, and what is sent. Everything here is kept in the store as JSON."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

from monitor.facts.base import Fact
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

SEVERITY_RANK = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


class Phase(StrEnum):
    """Where an alert is in its life."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class NotificationReason(StrEnum):
    """Why something is told. There is exactly one for each notification."""

    NEW = "new"
    WORSE = "worse"
    MORE = "more-subjects"
    REPEAT = "repeat"
    RESOLVED = "resolved"


class Alert(Fact, frozen=True, kw_only=True):
    """A finding over time. One fingerprint is one alert, however often it is found.

    `finding` is as last seen. `first_seen_at` is when this went on without a break since; `fired_at` and `resolved_at`
    are when it went into those phases. `absent_since` is set while it is not found any more, but not yet for long
    enough to be over. `group` is set when it fires and kept: a cause that changes moves nobody to another message.
    `firings` are the times at which it fired lately; `flapping` says that they are too many.
    """

    fingerprint: str
    finding: Finding
    phase: Phase
    first_seen_at: float
    seen_at: float
    fired_at: float | None = None
    resolved_at: float | None = None
    absent_since: float | None = None
    group: str | None = None
    firings: tuple[float, ...] = ()
    flapping: bool = False

    @property
    def since(self) -> float:
        """Return when the trouble began, as well as that is known."""
        known = self.finding.since
        return self.first_seen_at if known is None else min(known, self.first_seen_at)


class NotificationLogEntry(Fact, frozen=True, kw_only=True):
    """What a receiver was last told about a group: the alerts that were firing, and how bad each was."""

    receiver: str
    group: str
    at: float
    firing: dict[str, Severity]


class NotificationSubject(Fact, frozen=True, kw_only=True):
    """An alert as it stands in a notification. `fresh` marks those because of which the notification is sent."""

    fingerprint: str
    finding: Finding
    phase: Phase
    since: float
    resolved_at: float | None = None
    flapping: bool = False
    fresh: bool = True


class Symptoms(Fact, frozen=True, kw_only=True):
    """What else is wrong only because of this: how many findings of a rule, and the subjects of the first few."""

    rule: str
    count: int
    examples: tuple[dict[str, str], ...] = ()


class Notification(Fact, frozen=True, kw_only=True):
    """One thing to tell one receiver. `id` stays the same however often it is sent; `at` is when it was decided.

    `subjects` are all that fire in the group, and those that are over since it was last told: the fresh first, then
    the worst. `users` are the owners whose jobs this concerns. `summary` is set in a digest: then there may be no
    subjects. `sample` marks a test message.
    """

    id: str
    receiver: str
    group: str
    reason: NotificationReason
    severity: Severity
    at: float
    subjects: tuple[NotificationSubject, ...] = ()
    symptoms: tuple[Symptoms, ...] = ()
    users: tuple[str, ...] = ()
    summary: Summary | None = None
    sample: bool = False

    @property
    def resolved(self) -> bool:
        """Return whether nothing of the group is left."""
        return self.summary is None and all(subject.phase is Phase.RESOLVED for subject in self.subjects)


class Summary(Fact, frozen=True, kw_only=True):
    """What a digest says of a stretch of time: counts of alerts that fired and were resolved in it, by rule.

    `notes` say what else there is to say, in place of what fires now; the first of them is the title.
    """

    since: float
    until: float
    fired: dict[str, int] = msgspec.field(default_factory=dict)
    resolved: dict[str, int] = msgspec.field(default_factory=dict)
    still_firing: int = 0
    notes: tuple[Text, ...] = ()


class Batch(Fact, frozen=True, kw_only=True):
    """What goes out in one request: one notification, or several that waited and were merged into one message.

    `id` stays the same however often it is tried. `at` is the moment of this attempt.
    """

    id: str
    receiver: str
    notifications: tuple[Notification, ...]
    at: float


def fingerprint_of(finding: Finding) -> str:
    """Given a finding, return what its alert is known by: 16 hexadecimal digits of its rule and labels."""
    return hashlib.sha256(finding.key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def worst_severity(severities: list[Severity]) -> Severity:
    """Given severities, return the worst; info if there are none."""
    return min(severities, key=SEVERITY_RANK.__getitem__, default=Severity.INFO)


def alertname(rule: str) -> str:
    """Given a rule, return it as Prometheus names alerts: `disk-full` is `DiskFull`."""
    return "".join(word.capitalize() for word in rule.split("-"))
