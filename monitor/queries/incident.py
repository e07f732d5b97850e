"""The incident of an alert: the alert, its cause and symptoms, and what else happened to the same subject."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from monitor.access.audit import AuditEntry
from monitor.present.alerts import LocalizedAlert, LocalizedAlertEvent
from monitor.present.incident import MAX_RELATED_ALERTS, Incident, IncidentAlert, incident, neighbourhood
from monitor.present.timeline import TimelineEntry, action_entries, in_order

MAX_AUDITED = 300  # entries of the audit log in which actions are searched
MAX_EVENTS = 500  # of other alerts


class IncidentSource(Protocol):
    """The queries about alerts that an incident is read from."""

    def alerts(self, lang: str, /) -> tuple[LocalizedAlert, ...]: ...

    def merged_into(self, fingerprint: str, /) -> str: ...

    def past(self, fingerprint: str, lang: str, /) -> LocalizedAlert | None: ...

    def timeline(self, fingerprint: str, /) -> tuple[TimelineEntry, ...]: ...

    def events_about(
        self, labels: Mapping[str, str], since: float, limit: int, lang: str, /
    ) -> tuple[LocalizedAlertEvent, ...]: ...


def read_incident(
    source: IncidentSource, audited: Sequence[AuditEntry], fingerprint: str, lang: str, now: float
) -> Incident | None:
    """The incident of an alert in one language; None if the alert is not on record."""
    fingerprint, alerts = source.merged_into(fingerprint), source.alerts(lang)
    by_fingerprint = {alert.fingerprint: alert for alert in alerts}
    alert = by_fingerprint.get(fingerprint) or source.past(fingerprint, lang)
    if alert is None:
        return None

    def with_timeline(other: LocalizedAlert) -> IncidentAlert:
        return IncidentAlert(alert=other, timeline=full_timeline(source, audited, other, now))

    cause = by_fingerprint.get(alert.explained_by or "")
    symptoms = [other for other in alerts if other.explained_by == fingerprint]
    place = neighbourhood(alert)
    events = source.events_about(place.labels, place.since, MAX_EVENTS, lang) if place.labels else ()
    return incident(
        with_timeline(alert),
        None if cause is None else with_timeline(cause),
        [with_timeline(symptom) for symptom in symptoms[:MAX_RELATED_ALERTS]],
        events,
        now,
    )


def full_timeline(
    source: IncidentSource, audited: Sequence[AuditEntry], alert: LocalizedAlert, now: float
) -> tuple[TimelineEntry, ...]:
    """The events of an alert, and what people did about it, oldest first."""
    return in_order((*source.timeline(alert.fingerprint), *action_entries(audited, alert, now)))
