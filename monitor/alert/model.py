"""Alerts, notifications and batches. The structs are stored as JSON: their field names are part of the file format."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

import msgspec

from monitor.alert.charts import MessageCharts
from monitor.facts.base import Fact
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

EXTERNAL = "external"  # key of the headline of an alert from elsewhere
JOB_RESULTS = frozenset({"job-finished", "job-failed", "job-stopped", "job-not-started"})  # rules of job results
MAX_CACHED_FINGERPRINTS = 16_384
SEVERITY_RANK = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.INFO: 2}


class Phase(StrEnum):
    """State of an alert in its lifecycle."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class NotificationReason(StrEnum):
    """Why a notification is sent; each has exactly one reason."""

    NEW = "new"
    WORSE = "worse"
    MORE = "more-subjects"
    REPEAT = "repeat"
    RESOLVED = "resolved"


class Acknowledgement(Fact, frozen=True, kw_only=True):
    """Who is taking care of an alert, since when, and what they say about it."""

    at: float
    by: str
    comment: str = ""


class Alert(Fact, frozen=True, kw_only=True):
    """A finding over time: one alert per rule and subject, which is the key of its finding.

    The fingerprint is that of the key; one that schema 1 stored keeps its own until it is forgotten. `finding`
    is the last one seen. `first_seen_at` starts the current uninterrupted presence; `fired_at` and
    `resolved_at` are the transitions into those phases. `absent_since` is set while a firing alert is not found but not
    yet resolved. `group` is set when the alert fires and then kept, so that a changed cause does not move the alert to
    another message. `firings` are the recent firing times; `flapping` is set while there are too many of them.
    `notified` are the receivers of its notifications since it fired, and `acknowledged` says who takes care of it.
    `announced` (with severity and cause) and `routed` are labels of its first notification, see `alert.announced`.
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
    notified: tuple[str, ...] = ()
    acknowledged: Acknowledgement | None = None
    announced: dict[str, str] = msgspec.field(default_factory=dict)
    routed: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def since(self) -> float:
        """Start of the problem: as the finding reports it, if that is earlier than the first sighting."""
        known = self.finding.since
        return self.first_seen_at if known is None else min(known, self.first_seen_at)


class NotificationLogEntry(Fact, frozen=True, kw_only=True):
    """Content of the last notification to a receiver about a group: the firing alerts with their severities."""

    receiver: str
    group: str
    at: float
    firing: dict[str, Severity]


@dataclass(frozen=True)
class AlertState:
    """All alerts by fingerprint, and the notification log by receiver and group."""

    alerts: Mapping[str, Alert] = field(default_factory=dict)
    notification_log: Mapping[tuple[str, str], NotificationLogEntry] = field(default_factory=dict)


class NotificationSubject(Fact, frozen=True, kw_only=True):
    """An alert in a notification; `fresh` marks those that are the reason for it, `acknowledged_by` who handles it.

    `announced` is that of the alert.
    """

    fingerprint: str
    finding: Finding
    phase: Phase
    since: float
    resolved_at: float | None = None
    flapping: bool = False
    fresh: bool = True
    acknowledged_by: str | None = None
    announced: dict[str, str] = msgspec.field(default_factory=dict)


class Symptoms(Fact, frozen=True, kw_only=True):
    """Findings of one rule that a cause explains: their number, and the labels of the first few."""

    rule: str
    count: int
    examples: tuple[dict[str, str], ...] = ()


class AnswerLink(Fact, frozen=True, kw_only=True):
    """Where the owner of an object can answer: the name of the object, a path of the page, and what it permits."""

    name: str
    path: str
    may_release: bool = False


class Notification(Fact, frozen=True, kw_only=True):
    """One notification to one receiver, decided at `at`; retries keep the `id`.

    `subjects` are the firing alerts of the group and those resolved since the previous notification: fresh ones first,
    then by severity. `users` are the owners of the affected jobs. A digest has a `summary` and possibly no subjects.
    `sample` marks a test message. `omitted` counts the subjects that were left out because there are too many.
    `answers` are links for the owner. `page` is the path of the page about it, if that is not the page of an alert.
    It is not sent `not_before` a time.
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
    omitted: int = 0
    answers: tuple[AnswerLink, ...] = ()
    page: str | None = None
    not_before: float | None = None

    @property
    def due_at(self) -> float:
        """When it was to be sent."""
        return self.at if self.not_before is None else max(self.at, self.not_before)

    @property
    def resolved(self) -> bool:
        """Whether every alert of the group is resolved."""
        return self.summary is None and all(subject.phase is Phase.RESOLVED for subject in self.subjects)


class Summary(Fact, frozen=True, kw_only=True):
    """Content of a digest: alerts fired and resolved in a period, counted by rule.

    `notes` replace the list of firing alerts; the first one is the title. `charts` are for receivers that show them.
    """

    since: float
    until: float
    fired: dict[str, int] = msgspec.field(default_factory=dict)
    resolved: dict[str, int] = msgspec.field(default_factory=dict)
    still_firing: int = 0
    notes: tuple[Text, ...] = ()
    charts: MessageCharts | None = None


class Batch(Fact, frozen=True, kw_only=True):
    """Content of one request: a single notification, or several queued ones merged into one message.

    Retries keep the `id`; `at` is the time of this attempt.
    """

    id: str
    receiver: str
    notifications: tuple[Notification, ...]
    at: float


def fingerprint_of(finding: Finding) -> str:
    """Fingerprint of a new alert of a finding: 16 hexadecimal digits derived from rule and subject."""
    return fingerprint_of_key(finding.key)


def former_key(rule: str, labels: Mapping[str, str]) -> str:
    """Key of a finding in schema 1, which identified it by rule and all labels."""
    return rule + "".join(f"|{name}={labels[name]}" for name in sorted(labels))


def alerts_by_key(alerts: Iterable[Alert]) -> dict[str, Alert]:
    """Alerts by the keys of their findings."""
    return {alert.finding.key: alert for alert in alerts}


@lru_cache(MAX_CACHED_FINGERPRINTS)
def fingerprint_of_key(key: str) -> str:
    """Fingerprint of the alert of the finding with this key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def notification_id(*parts: str) -> str:
    """Deterministic id of the notification that these parts describe."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def subject_of(alert: Alert, phase: Phase, *, fresh: bool) -> NotificationSubject:
    """Subject that reports an alert as being in `phase`."""
    return NotificationSubject(
        fingerprint=alert.fingerprint,
        finding=alert.finding,
        phase=phase,
        since=alert.since,
        resolved_at=alert.resolved_at if phase is Phase.RESOLVED else None,
        flapping=alert.flapping,
        fresh=fresh,
        acknowledged_by=alert.acknowledged.by if alert.acknowledged is not None else None,
        announced=alert.announced,
    )


def worst_severity(severities: Iterable[Severity]) -> Severity:
    """Worst of some severities; info if there are none."""
    return min(severities, key=SEVERITY_RANK.__getitem__, default=Severity.INFO)


def has_escalated(fingerprint: str, severity: Severity, notified: Mapping[str, Severity]) -> bool:
    """Whether an alert is more severe than in the last notification about it."""
    before = notified.get(fingerprint)
    return before is not None and SEVERITY_RANK[severity] < SEVERITY_RANK[before]


@lru_cache
def alertname(rule: str) -> str:
    """Rule name in the style of Prometheus: `disk-full` is `DiskFull`."""
    return "".join(word.capitalize() for word in rule.split("-"))


def labels_of(finding: Finding, cluster: str | None) -> dict[str, str]:
    """Labels of a finding's alert, as matchers and webhooks see them; a `cluster` label of the finding wins."""
    common = {} if cluster is None else {"cluster": cluster}
    identity = {"alertname": alertname(finding.rule), "severity": finding.severity.value, "cause": finding.cause}
    return common | finding.labels | identity
