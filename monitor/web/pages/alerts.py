"""Alerts: what fires, what happened, what is silenced, what became of every message; and one alert."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from monitor.alert.matchers import matches
from monitor.alert.model import Phase, alertname
from monitor.present.alerts import AlertView
from monitor.queries.alerts import SilenceRequest, make_silence
from monitor.web.alerts_api import AlertsBackend
from monitor.web.pages.render import PageRequest
from monitor.web.pages.rows import SHOWN, AlertRow, alert_rows, subject

HISTORY, MESSAGES = 100, 60
DAY = 86400.0
DURATIONS = ("1h", "2h", "8h", "24h", "7d")


class AlertPages:
    """The pages about alerts."""

    def __init__(self, asked: AlertsBackend) -> None:
        self._asked = asked

    def show(self, visit: PageRequest) -> Response:
        """Show what fires, of one group or rule if it is named."""
        rows = [row for row in alert_rows(self._asked.alerts(visit.lang)) if _asked_for(visit, row)]
        history = self._asked.history(visit.now - DAY, HISTORY, visit.lang)
        sections = [
            visit.section("alerts", "alerts_full", polite=True, rows=rows[:SHOWN], more=max(0, len(rows) - SHOWN)),
            visit.section("silences", "silences", silences=self._asked.silences()),
            visit.section("history", "history", events=[(each, subject(each.labels)) for each in history]),
            visit.section("messages", "messages", messages=self._asked.deliveries(MESSAGES)),
        ]
        narrowed = visit.query("group") or visit.query("rule")
        return visit.answer(
            "alerts.html", visit.t("nav.alerts"), *sections, everything="all" in visit.request.query_params,
            narrowed=narrowed, durations=DURATIONS, matchers="",
        )  # fmt: skip

    def one(self, visit: PageRequest) -> Response:
        """Show all about one alert."""
        wanted = visit.request.path_params["fingerprint"]
        rows = alert_rows(self._asked.alerts(visit.lang))
        row = next((each for each in rows if each.alert.fingerprint == wanted), None)
        if row is None:
            gone = visit.section("gone", "gone_alert")
            return visit.answer("one.html", visit.t("alert.gone"), gone, status=404)
        others = [each for each in rows if each.alert.explained_by == wanted]
        cause = next((each for each in rows if each.alert.fingerprint == row.alert.explained_by), None)
        alert = row.alert
        matchers = " ".join(
            f"{name}={value}"
            for name, value in sorted({"alertname": alertname(alert.rule), **alert.labels}.items())
            if " " not in value
        )
        sections = [
            visit.section("alert", "alert", polite=True, row=row, cause=cause),
            visit.section("symptoms", "alerts", rows=others),
        ]
        return visit.answer(
            "alert.html", visit.rule(alert.rule), *sections, durations=DURATIONS, matchers=matchers, others=others
        )

    def preview(self, visit: PageRequest) -> Response:
        """Show what a silence would be about, before it is made."""
        wanted = SilenceRequest(matchers=tuple(visit.query("matchers").split()), duration=visit.query("duration") or "2h")
        alerts: Sequence[AlertView] = self._asked.alerts(visit.lang)
        try:
            silence = make_silence(wanted, "preview", visit.now)
        except ValueError as error:
            return visit.fragment("preview_silence", error=str(error), silence=None, rows=[])
        met = [each for each in alerts if each.phase is Phase.FIRING and matches(silence.matchers, _labels(each))]
        return visit.fragment("preview_silence", error=None, silence=silence, rows=alert_rows(met))


def _labels(alert: AlertView) -> dict[str, str]:
    """Return what a silence of this alert is matched with."""
    own = {"alertname": alertname(alert.rule), "severity": alert.severity.value, "cause": alert.cause}
    return alert.labels | own


def _asked_for(visit: PageRequest, row: AlertRow) -> bool:
    """Return whether an alert is to be listed: of a group or rule that is named all, else what fires by itself."""
    alert = row.alert
    group, rule = visit.query("group"), visit.query("rule")
    if (group and alert.group != group) or (rule and alert.rule != rule):
        return False
    if "all" in visit.request.query_params or group:
        return True
    return alert.phase is Phase.FIRING and alert.explained_by is None
