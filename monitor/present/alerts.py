"""Alerts, silences and deliveries in one language, and as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monitor.alert.model import SEVERITY_RANK, Acknowledgement, Phase
from monitor.alert.mute import AlertView
from monitor.alert.silences import Silence
from monitor.alert.store import AlertEvent, Delivery
from monitor.base.localtime import local_seconds
from monitor.facts.base import Fact
from monitor.facts.findings import Severity
from monitor.i18n.figures import brief_duration
from monitor.i18n.notes import sentence
from monitor.present.findings import subject, subject_labels
from monitor.present.table import Rows, TextTable, make_limited_table, make_table, page_word, table_text

PHASE_ORDER = (Phase.FIRING, Phase.PENDING, Phase.RESOLVED)


class LocalizedAlert(Fact, frozen=True, kw_only=True):
    """An alert in one language. `told` names the receivers that were notified; other fields say why it is muted."""

    fingerprint: str
    rule: str
    severity: Severity
    cause: str
    phase: Phase
    labels: dict[str, str]
    headline: str
    since: float
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    fired_at: float | None = None
    resolved_at: float | None = None
    group: str | None = None
    flapping: bool = False
    held: bool = False
    silenced_by: str | None = None
    in_maintenance: bool = False
    explained_by: str | None = None
    told: tuple[str, ...] = ()
    acknowledged: Acknowledgement | None = None

    @property
    def lasted(self) -> float | None:
        """Duration in seconds of an alert that has resolved; None while it may grow."""
        resolved = self.resolved_at if self.phase is Phase.RESOLVED else None
        return None if resolved is None else max(0.0, resolved - self.since)


@dataclass(frozen=True)
class AlertRow:
    """An alert, its subject labels, and the number of its symptoms."""

    alert: LocalizedAlert
    subject: tuple[tuple[str, str], ...]
    symptoms: int = 0


class LocalizedAlertEvent(Fact, frozen=True, kw_only=True):
    """A change of an alert, in one language."""

    at: float
    what: str
    fingerprint: str
    rule: str
    severity: Severity
    labels: dict[str, str]
    headline: str


class ReceiverTestResult(Fact, frozen=True, kw_only=True):
    """Result of a test message. `answer` is the response of the receiver, or the error."""

    receiver: str
    kind: str
    ok: bool
    answer: str


def localize_alerts(alerts: Iterable[AlertView], lang: str) -> tuple[LocalizedAlert, ...]:
    """Alerts in one language: firing ones first, causes before symptoms, then by severity, oldest first."""
    return tuple(_view(alert, lang) for alert in sorted(alerts, key=_order))


def localize_events(events: Iterable[AlertEvent], lang: str) -> tuple[LocalizedAlertEvent, ...]:
    """Events in one language, in the same order."""
    return tuple(
        LocalizedAlertEvent(
            at=event.at,
            what=event.what.value,
            fingerprint=event.alert.fingerprint,
            rule=event.alert.finding.rule,
            severity=event.alert.finding.severity,
            labels=event.alert.finding.labels,
            headline=sentence(event.alert.finding.headline, lang),
        )
        for event in events
    )


def alert_rows(alerts: Sequence[LocalizedAlert]) -> list[AlertRow]:
    """Alerts as rows, in the same order."""
    symptoms = Counter(alert.explained_by for alert in alerts if alert.phase is Phase.FIRING)
    return [AlertRow(alert, subject_labels(alert.labels), symptoms[alert.fingerprint]) for alert in alerts]


def has_urgent(alerts: Iterable[LocalizedAlert]) -> bool:
    """Whether an alert fires that is neither informational nor silenced."""
    return any(
        alert.phase is Phase.FIRING and alert.severity is not Severity.INFO and alert.silenced_by is None
        for alert in alerts
    )


def alerts_table(alerts: Sequence[LocalizedAlert], now: float, everything: bool = False, lang: str = "en") -> TextTable:
    """Table of firing alerts that are not symptoms; of all alerts with `everything`."""
    selected = [alert for alert in alerts if everything or (alert.phase is Phase.FIRING and alert.explained_by is None)]
    rows: Rows = [
        (
            alert.phase.value,
            alert.severity.value,
            alert.rule,
            subject(alert.labels, lang),
            alert.headline,
            brief_duration(max(0.0, (alert.resolved_at or now) - alert.since), lang),
            _notified(alert, lang),
            alert.fingerprint,
        )
        for alert in selected
    ]
    columns = "phase | severity | rule | subject | headline | for | notified | id"
    return make_limited_table("Alerts", columns, rows, "no alert is firing")


def silences_table(silences: Sequence[Silence], now: float, lang: str = "en") -> TextTable:
    """Table of silences."""
    rows: Rows = [
        (
            silence.id,
            ", ".join(str(matcher) for matcher in silence.matchers),
            brief_duration(max(0.0, silence.ends_at - now), lang),
            silence.author,
            silence.comment,
            "active" if silence.disabled is None else table_text(lang, "disabled", reason=silence.disabled),
        )
        for silence in silences
    ]
    return make_table("Silences", "id | matchers | for | author | comment | state", rows, "no active silences")


def history_table(events: Sequence[LocalizedAlertEvent], timezone: str = "UTC", lang: str = "en") -> TextTable:
    """Table of alert events."""
    rows: Rows = [
        (
            local_seconds(event.at, timezone),
            event.what,
            event.severity.value,
            event.rule,
            subject(event.labels, lang),
            event.headline,
        )
        for event in events
    ]
    columns = f"{table_text(lang, 'at-zone', zone=timezone)} | event | severity | rule | subject | headline"
    return make_table("History", columns, rows, "no events")


def deliveries_table(deliveries: Sequence[Delivery], timezone: str = "UTC", lang: str = "en") -> TextTable:
    """Table of deliveries."""
    rows: Rows = [
        (
            local_seconds(delivery.at, timezone),
            delivery.receiver,
            page_word(lang, "reason", delivery.reason.value),
            delivery.group,
            page_word(lang, "delivery", delivery.state),
            brief_duration(delivery.late, lang),
            str(delivery.attempts),
            delivery.word or "",
        )
        for delivery in deliveries
    ]
    columns = (
        f"{table_text(lang, 'at-zone', zone=timezone)} | receiver | reason | group | state | took | attempts | response"
    )
    return make_table("Deliveries", columns, rows, "no deliveries")


def receiver_tests_table(results: Sequence[ReceiverTestResult]) -> TextTable:
    """Table of test message results."""
    rows: Rows = [
        (result.receiver, result.kind, "accepted" if result.ok else "failed", result.answer) for result in results
    ]
    return make_table("Test messages", "receiver | kind | result | response", rows, "no receivers configured")


def _notified(alert: LocalizedAlert, lang: str) -> str:
    if alert.silenced_by is not None:
        return table_text(lang, "silenced-by", id=alert.silenced_by)
    if alert.in_maintenance:
        return table_text(lang, "maintenance")
    if alert.explained_by is not None:
        return table_text(lang, "explained-by", id=alert.explained_by)
    return ", ".join(alert.told)


def _order(shown: AlertView) -> tuple[int, bool, int, float, str]:
    alert = shown.alert
    rank = SEVERITY_RANK[alert.finding.severity]
    return PHASE_ORDER.index(alert.phase), shown.explained_by is not None, rank, alert.since, alert.fingerprint


def _view(shown: AlertView, lang: str) -> LocalizedAlert:
    alert, finding = shown.alert, shown.alert.finding
    return LocalizedAlert(
        fingerprint=alert.fingerprint,
        rule=finding.rule,
        severity=finding.severity,
        cause=finding.cause,
        phase=alert.phase,
        labels=finding.labels,
        headline=sentence(finding.headline, lang),
        since=alert.since,
        evidence=tuple(sentence(text, lang) for text in finding.evidence),
        advice=tuple(sentence(text, lang) for text in finding.advice),
        fired_at=alert.fired_at,
        resolved_at=alert.resolved_at,
        group=alert.group,
        flapping=alert.flapping,
        held=finding.held,
        silenced_by=shown.silenced_by,
        in_maintenance=shown.in_maintenance,
        explained_by=shown.explained_by,
        told=shown.told,
        acknowledged=alert.acknowledged,
    )
