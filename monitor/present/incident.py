"""An incident: an alert with its cause, its symptoms, and everything that happened meanwhile, in one timeline. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monitor.facts.base import Fact
from monitor.present.alerts import LocalizedAlert, LocalizedAlertEvent
from monitor.present.timeline import TimelineEntry

MAX_RELATED_ALERTS = 20  # symptoms
MAX_INCIDENT_ENTRIES = 300
BEFORE_SECONDS = 900.0  # what happened shortly before may have caused it
EVENTS = ("fired", "escalated", "resolved")
# What other alerts have to have in common with the alert, from the widest.
PLACES = (("node",), ("namespace", "pod"), ("namespace", "job"), ("service",), ("mount",))


class IncidentAlert(Fact, frozen=True, kw_only=True):
    """An alert and its timeline."""

    alert: LocalizedAlert
    timeline: tuple[TimelineEntry, ...] = ()


class IncidentEntry(Fact, frozen=True, kw_only=True):
    """Something that happened, and the alert to which it happened."""

    entry: TimelineEntry
    fingerprint: str
    rule: str
    headline: str


class Incident(Fact, frozen=True, kw_only=True):
    """All that is on record about an incident. `timeline` includes the cause, the symptoms and other alerts nearby."""

    alert: LocalizedAlert
    cause: LocalizedAlert | None
    symptoms: tuple[LocalizedAlert, ...]
    timeline: tuple[IncidentEntry, ...]
    written_at: float


@dataclass(frozen=True)
class Neighbourhood:
    """The labels and the time of other alerts that may belong to an incident; no labels if it has no place."""

    labels: dict[str, str]
    since: float


def neighbourhood(alert: LocalizedAlert) -> Neighbourhood:
    """Where and since when other alerts may belong to the incident."""
    names: tuple[str, ...] = next((names for names in PLACES if all(name in alert.labels for name in names)), ())
    return Neighbourhood({name: alert.labels[name] for name in names}, alert.since - BEFORE_SECONDS)


def incident(
    own: IncidentAlert,
    cause: IncidentAlert | None,
    symptoms: Sequence[IncidentAlert],
    events: Iterable[LocalizedAlertEvent],
    now: float,
) -> Incident:
    """The incident of the alert `own`. `events` are those of other alerts in its neighbourhood."""
    told = (own, *(() if cause is None else (cause,)), *symptoms)
    known = {each.alert.fingerprint for each in told}
    until = now if own.alert.resolved_at is None else own.alert.resolved_at
    entries = [_of_alert(each.alert, entry) for each in told for entry in each.timeline]
    entries += [
        _of_event(event)
        for event in events
        if event.what in EVENTS and event.fingerprint not in known and event.at <= until
    ]
    entries.sort(key=lambda entry: entry.entry.at)
    return Incident(
        alert=own.alert,
        cause=None if cause is None else cause.alert,
        symptoms=tuple(each.alert for each in symptoms),
        timeline=tuple(entries[-MAX_INCIDENT_ENTRIES:]),
        written_at=now,
    )


def _of_alert(alert: LocalizedAlert, entry: TimelineEntry) -> IncidentEntry:
    return IncidentEntry(entry=entry, fingerprint=alert.fingerprint, rule=alert.rule, headline=alert.headline)


def _of_event(event: LocalizedAlertEvent) -> IncidentEntry:
    entry = TimelineEntry(at=event.at, what=event.what, severity=event.severity)
    return IncidentEntry(entry=entry, fingerprint=event.fingerprint, rule=event.rule, headline=event.headline)
