"""The timeline of an alert: when it fired, who was notified, and what was done about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from monitor.access.audit import AuditEntry
from monitor.alert.delivery.mentions import Mention
from monitor.alert.matchers import matches
from monitor.alert.model import Alert, Phase, labels_of
from monitor.alert.silences import Silence
from monitor.alert.store import AlertEvent, AlertEventKind
from monitor.facts.base import Fact
from monitor.facts.findings import Severity
from monitor.i18n import CATALOGS
from monitor.present.alerts import LocalizedAlert
from monitor.present.rows import page_text

MERGED_SECONDS = 60.0  # notifications for the same reason within this time are one entry
MAX_ENTRIES = 60
SAME_MOMENT_SECONDS = 1.0  # a problem that began just before its alert fired has no entry
ACTIONS = ("release-gpu", "delete-pods", "cordon", "uncordon", "cleanup-run")
BEGUN = "begun"  # the result of an action whose steps follow


class TimelineEntry(Fact, frozen=True, kw_only=True):
    """Something that happened to an alert.

    `what` is an event of its history, began, notified, silenced, unsilenced or an audited action; `who` are the
    receivers or the person; `state` is that of the delivery or action.
    """

    at: float
    what: str
    who: str = ""
    severity: Severity | None = None
    reason: str = ""
    state: str = ""
    detail: str = ""
    until: float | None = None


def begin_of(alert: Alert) -> float:
    """When the timeline of an alert begins: it fired then, or was first seen."""
    return alert.first_seen_at if alert.fired_at is None else min(alert.fired_at, alert.first_seen_at)


def end_of(alert: Alert, now: float) -> float:
    """When the timeline of an alert ends: it resolved then; now while it has not."""
    return alert.resolved_at if alert.phase is Phase.RESOLVED and alert.resolved_at is not None else now


def alert_timeline(
    alert: Alert, events: Iterable[AlertEvent], mentions: Iterable[Mention], silences: Iterable[Silence], now: float
) -> tuple[TimelineEntry, ...]:
    """What happened to an alert, oldest first. Silences are those that have not ended before its timeline begins."""
    entries = [_of_event(event) for event in events]
    if alert.since < begin_of(alert) - SAME_MOMENT_SECONDS:
        entries.append(TimelineEntry(at=alert.since, what="began"))
    entries += _of_mentions(mentions)
    labels, end = labels_of(alert.finding, None), end_of(alert, now)
    for silence in silences:
        if silence.starts_at <= end and matches(silence.matchers, labels):
            entries += _of_silence(silence, begin_of(alert), end)
    return in_order(entries)


def in_order(entries: Iterable[TimelineEntry]) -> tuple[TimelineEntry, ...]:
    """The entries, oldest first; of too many the latest."""
    return tuple(sorted(entries, key=lambda entry: entry.at)[-MAX_ENTRIES:])


def action_entries(audited: Iterable[AuditEntry], alert: LocalizedAlert, now: float) -> list[TimelineEntry]:
    """Audited actions on the subject of an alert between its start and its end."""
    targets = _targets(alert.labels)
    since, until = alert.since, now if alert.lasted is None else alert.since + alert.lasted
    return [
        TimelineEntry(at=entry.at, what=entry.what, who=entry.who, state=entry.result, detail=entry.on)
        for entry in audited
        if entry.what in ACTIONS
        and entry.result != BEGUN
        and since <= entry.at <= until
        and not targets.isdisjoint(entry.on.split())
    ]


def entry_text(entry: TimelineEntry, lang: str) -> str:
    """What happened, in words. The time at which a silence ends is not part of them."""
    key = f"timeline.{entry.what}"
    if entry.what in ("fired", "escalated"):
        severity = page_text(lang, f"severity.{entry.severity.value}") if entry.severity is not None else ""
        return page_text(lang, key, severity=severity)
    if entry.what == "notified":
        return page_text(lang, f"{key}.{entry.state}", who=entry.who)
    if entry.what in ("began", "unsilenced", "resolved"):
        return page_text(lang, key)
    if entry.what in ("silenced", "acknowledged") or entry.state == "done":
        return page_text(lang, key, who=entry.who)
    action, result = known_text(lang, "audit.what", entry.what), known_text(lang, "audit.result", entry.state)
    return page_text(lang, "timeline.not-done", action=action, who=entry.who, result=result)


def known_text(lang: str, table: str, word: str) -> str:
    """The text of a word from the record; the word itself if it has none."""
    return CATALOGS[lang].get(f"page.{table}.{word}", word)


def _targets(labels: Mapping[str, str]) -> set[str]:
    """How the audit log names the subject of an alert: its pod, else its GPU, else its node."""
    node, gpu, pod = labels.get("node"), labels.get("gpu"), labels.get("pod")
    targets = {node, f"node={node}"} if node is not None else set()
    if pod is not None:
        targets.add(f"{labels.get('namespace')}/{pod}")
    if gpu is not None:
        targets.add(f"{node}/{gpu}")
    return targets


def _of_event(event: AlertEvent) -> TimelineEntry:
    acknowledged = event.alert.acknowledged if event.what is AlertEventKind.ACKNOWLEDGED else None
    return TimelineEntry(
        at=event.at,
        what=event.what.value,
        severity=event.alert.finding.severity,
        who=acknowledged.by if acknowledged is not None else "",
        detail=acknowledged.comment if acknowledged is not None else "",
    )


def _of_mentions(mentions: Iterable[Mention]) -> list[TimelineEntry]:
    """Notifications, those of several receivers for the same reason as one entry."""
    merged: list[TimelineEntry] = []
    for mention in sorted(mentions, key=lambda mention: mention.at):
        entry = TimelineEntry(
            at=mention.at, what="notified", who=mention.receiver, reason=mention.reason.value, state=mention.state,
            detail="" if mention.state == "sent" else mention.answer or "",
        )  # fmt: skip
        last = merged[-1] if merged else None
        if last is not None and entry.at - last.at <= MERGED_SECONDS and _is_like(last, entry):
            if entry.who not in last.who.split(", "):
                merged[-1] = replace(last, who=f"{last.who}, {entry.who}")
            continue
        merged.append(entry)
    return merged


def _is_like(first: TimelineEntry, second: TimelineEntry) -> bool:
    return (first.reason, first.state, first.detail) == (second.reason, second.state, second.detail)


def _of_silence(silence: Silence, begin: float, end: float) -> list[TimelineEntry]:
    entries = [
        TimelineEntry(
            at=max(silence.starts_at, begin), what="silenced", who=silence.author, until=silence.ends_at,
            detail=silence.comment,
        )
    ]  # fmt: skip
    if silence.ends_at <= end:
        entries.append(TimelineEntry(at=silence.ends_at, what="unsilenced"))
    return entries
