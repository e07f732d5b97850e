"""Alert pages: the list with history, silences and deliveries, and one alert."""

from __future__ import annotations

from starlette.responses import Response

from monitor.alert.matchers import matches
from monitor.alert.model import Phase, alertname
from monitor.present.alerts import AlertRow, LocalizedAlert, alert_rows, localize_alerts
from monitor.present.findings import subject_labels
from monitor.queries.alerts import SilenceRequest, make_silence
from monitor.web.alerts_api import AlertsBackend
from monitor.web.pages.render import PageRequest

MAX_EVENTS, MAX_DELIVERIES = 100, 60
DAY = 86400.0
DURATIONS = ("1h", "2h", "8h", "24h", "7d")


class AlertPages:
    """The pages about alerts."""

    def __init__(self, alerts: AlertsBackend) -> None:
        self._alerts = alerts

    def show(self, page: PageRequest) -> Response:
        """The alerts, optionally of one group or rule."""
        rows = [row for row in alert_rows(self._alerts.alerts(page.lang)) if _is_listed(page, row.alert)]
        events = self._alerts.history(page.now - DAY, MAX_EVENTS, page.lang)
        sections = [
            page.section("alerts", "alerts_full", polite=True, **page.limited(rows)),
            page.section("silences", "silences", silences=self._alerts.silences()),
            page.section("history", "history", events=[(event, subject_labels(event.labels)) for event in events]),
            page.section("messages", "messages", messages=self._alerts.deliveries(MAX_DELIVERIES)),
        ]
        narrowed = page.query("group") or page.query("rule")
        return page.respond(
            "alerts.html", page.t("nav.alerts"), *sections, everything="all" in page.request.query_params,
            narrowed=narrowed, durations=DURATIONS, matchers="",
        )  # fmt: skip

    def one(self, page: PageRequest) -> Response:
        """One alert, its cause and its symptoms."""
        fingerprint = page.request.path_params["fingerprint"]
        rows = alert_rows(self._alerts.alerts(page.lang))
        row = next((row for row in rows if row.alert.fingerprint == fingerprint), None)
        if row is None:
            gone = page.section("gone", "gone_alert")
            return page.respond("one.html", page.t("alert.gone"), gone, status=404)
        symptoms = [other for other in rows if other.alert.explained_by == fingerprint]
        cause = next((other for other in rows if other.alert.fingerprint == row.alert.explained_by), None)
        alert = row.alert
        matchers = " ".join(
            f"{name}={value}"
            for name, value in sorted({"alertname": alertname(alert.rule), **alert.labels}.items())
            if " " not in value
        )
        sections = [
            page.section("alert", "alert", polite=True, row=row, cause=cause),
            page.section("symptoms", "alerts", rows=symptoms),
        ]
        return page.respond(
            "alert.html", page.rule(alert.rule), *sections, durations=DURATIONS, matchers=matchers, others=symptoms
        )

    def preview(self, page: PageRequest) -> Response:
        """The alerts that a silence would mute."""
        request = SilenceRequest(
            matchers=tuple(page.query("matchers").split()), duration=page.query("duration") or "2h"
        )
        try:
            silence = make_silence(request, "preview", page.now)
        except ValueError as error:
            return page.fragment("preview_silence", error=str(error), silence=None, rows=[])
        muted = [
            alert
            for alert in self._alerts.alerts(page.lang)
            if alert.phase is Phase.FIRING and matches(silence.matchers, _matched_labels(alert))
        ]
        return page.fragment("preview_silence", error=None, silence=silence, rows=alert_rows(muted))


def firing_alerts(page: PageRequest, **labels: str) -> list[AlertRow]:
    """Firing alerts with these labels. Only those are rendered."""
    wanted = labels.items()
    if page.deps.data.alerts is None:
        alerts = page.deps.alerts.alerts(page.lang) if page.deps.alerts is not None else ()
        return alert_rows([alert for alert in alerts if alert.phase is Phase.FIRING and wanted <= alert.labels.items()])
    selected = [
        shown
        for shown in page.deps.data.alerts()
        if shown.alert.phase is Phase.FIRING and wanted <= shown.alert.finding.labels.items()
    ]
    return alert_rows(localize_alerts(selected, page.lang))


def _matched_labels(alert: LocalizedAlert) -> dict[str, str]:
    """The labels that the matchers of a silence apply to."""
    return alert.labels | {
        "alertname": alertname(alert.rule), "severity": alert.severity.value, "cause": alert.cause,
    }  # fmt: skip


def _is_listed(page: PageRequest, alert: LocalizedAlert) -> bool:
    """Whether to list an alert: all of a given group, else those that fire and are not symptoms."""
    group, rule = page.query("group"), page.query("rule")
    if (group and alert.group != group) or (rule and alert.rule != rule):
        return False
    if "all" in page.request.query_params or group:
        return True
    return alert.phase is Phase.FIRING and alert.explained_by is None
