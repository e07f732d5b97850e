"""One alert: what is wrong, what can be done, what has happened, and which other alerts belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from starlette.responses import Response

from monitor.alert.model import Phase
from monitor.present.alert_actions import silence_scopes
from monitor.present.alerts import AlertRow, LocalizedAlert, alert_rows
from monitor.present.rows import ClusterIndex
from monitor.present.timeline import TimelineEntry
from monitor.queries.incident import MAX_AUDITED, full_timeline
from monitor.web.alerts_api import AlertsBackend
from monitor.web.pages.alerts import DURATIONS, actions_for, untold
from monitor.web.pages.cached import TimedCache
from monitor.web.pages.render import PageRequest

MAX_RELATED = 20
RELATING_LABELS = ("node", "pod", "mount", "service", "job")


class AlertPage:
    """The page at /alerts/FINGERPRINT, to which messages link."""

    def __init__(self, alerts: AlertsBackend) -> None:
        self._alerts = alerts
        self._timelines = TimedCache[tuple[TimelineEntry, ...]]()

    def show(self, page: PageRequest) -> Response:
        fingerprint = self._alerts.merged_into(page.request.path_params["fingerprint"])
        rows = alert_rows(self._alerts.alerts(page.lang))
        row = next((row for row in rows if row.alert.fingerprint == fingerprint), None) or self._past(page, fingerprint)
        if row is None:
            gone = page.section("gone", "gone_alert")
            return page.respond("one.html", page.t("alert.gone"), gone, status=404)
        alert = row.alert
        actions = actions_for(page, alert, ClusterIndex(page.deps.cluster.view()))
        cause = next((other for other in rows if other.alert.fingerprint == alert.explained_by), None)
        symptoms = [other for other in rows if other.alert.explained_by == fingerprint]
        sections = [
            page.section("alert", "alert", polite=True, row=row, untold=untold(page)),
            page.section("actions", "alert_actions", alert=alert, actions=actions),
            page.section("details", "alert_details", alert=alert, cause=cause),
            page.section("timeline", "timeline", polite=True, entries=self._timeline(page, alert)),
            page.section("symptoms", "related", title=page.t("alert.explains"), **page.limited(symptoms, MAX_RELATED)),
            page.section(
                "related", "related", title=page.t("alert.related"), **page.limited(_related(rows, row), MAX_RELATED)
            ),
        ]
        return page.respond(
            "alert.html", page.rule(alert.rule), *sections, row=row, durations=DURATIONS, scopes=silence_scopes(alert)
        )

    def _past(self, page: PageRequest, fingerprint: str) -> AlertRow | None:
        alert = self._alerts.past(fingerprint, page.lang)
        return alert_rows([alert])[0] if alert is not None else None

    def _timeline(self, page: PageRequest, alert: LocalizedAlert) -> tuple[TimelineEntry, ...]:
        """The events of the alert, and what people did about it."""
        audited = partial(page.deps.audit, MAX_AUDITED) if page.deps.audit is not None else tuple
        return self._timelines.get(
            (alert.fingerprint,), lambda: full_timeline(self._alerts, audited(), alert, page.now)
        )


def _related(rows: Sequence[AlertRow], row: AlertRow) -> list[AlertRow]:
    """Other firing alerts about the same job, pod, node, mount or service, without its symptoms."""
    about = {(name, value) for name, value in row.subject if name in RELATING_LABELS}
    return [
        other
        for other in rows
        if other.alert.phase is Phase.FIRING
        and other.alert.fingerprint != row.alert.fingerprint
        and row.alert.fingerprint != other.alert.explained_by
        and not about.isdisjoint(other.subject)
    ]
