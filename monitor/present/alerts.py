"""Alerts, silences and deliveries in words, and as tables for the terminal and the page alike. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.alert.model import SEVERITY_RANK, Phase, alertname
from monitor.alert.mute import AlertView
from monitor.alert.silences import Silence
from monitor.alert.store import AlertEvent, Delivery
from monitor.base.units import format_duration, utc_timestamp
from monitor.facts.base import Fact
from monitor.facts.findings import Severity
from monitor.i18n.notes import sentence
from monitor.present.findings import SUBJECT
from monitor.present.node import Rows, Table, make_table

SHOWN = 200
ORDER = (Phase.FIRING, Phase.PENDING, Phase.RESOLVED)


class SaidAlert(Fact, frozen=True, kw_only=True):
    """An alert in one language. `told` are the receivers that know of it; the rest says why others do not."""

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


class SaidEvent(Fact, frozen=True, kw_only=True):
    """Something that happened to an alert, in one language."""

    at: float
    what: str
    fingerprint: str
    rule: str
    severity: Severity
    labels: dict[str, str]
    headline: str


class Tried(Fact, frozen=True, kw_only=True):
    """What became of a test message. `answer` is the receiver's own, or why there is none."""

    receiver: str
    kind: str
    ok: bool
    answer: str


def say_alerts(shown: Iterable[AlertView], lang: str) -> tuple[SaidAlert, ...]:
    """Given alerts, return them in words: what fires first, causes before symptoms, the worst and oldest first."""
    return tuple(_said(each, lang) for each in sorted(shown, key=_order))


def say_events(events: Iterable[AlertEvent], lang: str) -> tuple[SaidEvent, ...]:
    """Given what happened, return it in words, in the same order."""
    return tuple(
        SaidEvent(
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


def urgent(alerts: Iterable[SaidAlert]) -> bool:
    """Return whether something fires that somebody should look at and nobody has silenced."""
    return any(
        alert.phase is Phase.FIRING and alert.severity is not Severity.INFO and alert.silenced_by is None
        for alert in alerts
    )


def alerts_table(alerts: Sequence[SaidAlert], now: float, everything: bool = False) -> Table:
    """Given alerts in words, return their table: those that fire, or all with `everything`."""
    shown = [each for each in alerts if everything or (each.phase is Phase.FIRING and each.explained_by is None)]
    rows: Rows = [
        (
            each.phase.value,
            each.severity.value,
            each.rule,
            subject(each.labels),
            each.headline,
            format_duration(max(0.0, (each.resolved_at or now) - each.since)),
            _told(each),
            each.fingerprint,
        )
        for each in shown[:SHOWN]
    ]
    title = f"Alerts (the first {SHOWN} of {len(shown)})" if len(shown) > SHOWN else "Alerts"
    return make_table(title, "phase | severity | rule | subject | what | for | told | id", rows, "nothing fires")


def alert_table(alert: SaidAlert, now: float) -> Table:
    """Given an alert in words, return all about it: what to do, and how to silence it."""
    until = alert.resolved_at or now
    matchers = " ".join(
        f"'{name}={value}'" for name, value in sorted({"alertname": alertname(alert.rule), **alert.labels}.items())
    )
    rows: Rows = [
        ("what", alert.headline),
        ("where", subject(alert.labels)),
        ("since", f"{moment(alert.since)} UTC, {format_duration(max(0.0, until - alert.since))}"),
        ("phase", f"{alert.phase.value}, {alert.severity.value}" + (", comes and goes" if alert.flapping else "")),
        ("told", _told(alert)),
        *(("evidence", text) for text in alert.evidence),
        *(("to do", text) for text in alert.advice),
        ("to silence", f"gpuwarden alerts silence --for 2h --comment 'why' {matchers}"),
    ]
    return make_table(f"Alert {alert.fingerprint}", "about | text", rows)


def silences_table(silences: Sequence[Silence], now: float) -> Table:
    """Given silences, return their table."""
    rows: Rows = [
        (
            each.id,
            ", ".join(str(matcher) for matcher in each.matchers),
            format_duration(max(0.0, each.ends_at - now)),
            each.author,
            each.comment,
        )
        for each in silences
    ]
    return make_table("Silences", "id | of what | for | by | why", rows, "nothing is silenced")


def history_table(events: Sequence[SaidEvent]) -> Table:
    """Given what happened, return its table."""
    rows: Rows = [
        (moment(each.at), each.what, each.severity.value, each.rule, subject(each.labels), each.headline)
        for each in events
    ]
    return make_table("History", "at (UTC) | what | severity | rule | subject | how", rows, "nothing has happened")


def deliveries_table(deliveries: Sequence[Delivery]) -> Table:
    """Given what became of messages, return its table."""
    rows: Rows = [
        (
            moment(each.at),
            each.receiver,
            each.reason.value,
            each.group,
            each.state,
            format_duration(each.late),
            str(each.attempts),
            each.word or "",
        )
        for each in deliveries
    ]
    columns = "at (UTC) | receiver | reason | group | state | took | attempts | answer"
    return make_table("Messages", columns, rows, "nothing was sent")


def tried_table(tried: Sequence[Tried]) -> Table:
    """Given what became of test messages, return its table."""
    rows: Rows = [(each.receiver, each.kind, "accepted" if each.ok else "failed", each.answer) for each in tried]
    return make_table("Test messages", "receiver | kind | result | answer", rows, "there is no receiver")


def subject(labels: dict[str, str]) -> str:
    """Given labels, return what something is about, the most telling first."""
    return ", ".join(f"{name} {labels[name]}" for name in SUBJECT if name in labels)


def moment(at: float) -> str:
    """Given a time, return it as people read it."""
    return utc_timestamp(at)


def _told(alert: SaidAlert) -> str:
    if alert.silenced_by is not None:
        return f"silenced by {alert.silenced_by}"
    if alert.in_maintenance:
        return "maintenance"
    if alert.explained_by is not None:
        return f"explained by {alert.explained_by}"
    return ", ".join(alert.told)


def _order(shown: AlertView) -> tuple[int, bool, int, float, str]:
    alert = shown.alert
    rank = SEVERITY_RANK[alert.finding.severity]
    return ORDER.index(alert.phase), shown.explained_by is not None, rank, alert.since, alert.fingerprint


def _said(shown: AlertView, lang: str) -> SaidAlert:
    alert, finding = shown.alert, shown.alert.finding
    return SaidAlert(
        fingerprint=alert.fingerprint,
        rule=finding.rule,
        severity=finding.severity,
        cause=finding.cause,
        phase=alert.phase,
        labels=finding.labels,
        headline=sentence(finding.headline, lang),
        since=alert.since,
        evidence=tuple(sentence(note, lang) for note in finding.evidence),
        advice=tuple(sentence(note, lang) for note in finding.advice),
        fired_at=alert.fired_at,
        resolved_at=alert.resolved_at,
        group=alert.group,
        flapping=alert.flapping,
        held=finding.held,
        silenced_by=shown.silenced_by,
        in_maintenance=shown.in_maintenance,
        explained_by=shown.explained_by,
        told=shown.told,
    )
