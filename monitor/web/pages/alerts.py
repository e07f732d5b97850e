"""The list of alerts, with history, silences and deliveries, and the preview of a silence."""

from __future__ import annotations

from starlette.responses import Response

from monitor.alert.matchers import MAX_MATCHERS, matches
from monitor.alert.model import Phase, alertname
from monitor.present.alert_actions import AlertAction, alert_actions
from monitor.present.alerts import AlertRow, LocalizedAlert, alert_rows, localize_alerts
from monitor.present.findings import subject_labels
from monitor.present.rows import ClusterIndex
from monitor.queries.alerts import SilenceRequest, make_silence
from monitor.web.alerts_api import AlertsBackend
from monitor.web.pages.render import PageRequest

MAX_EVENTS, MAX_DELIVERIES = 100, 60
MAX_ROWS_WITH_ACTIONS = 30
DAY = 86400.0
DURATIONS = ("1h", "2h", "8h", "24h", "7d")


class AlertPages:
    """The pages about alerts."""

    def __init__(self, alerts: AlertsBackend) -> None:
        self._alerts = alerts

    def show(self, page: PageRequest) -> Response:
        """The alerts, optionally of one group or rule."""
        rows = [row for row in alert_rows(self._alerts.alerts(page.lang)) if _is_listed(page, row.alert)]
        narrowed = page.query("group") or page.query("rule")
        everything = "all" in page.request.query_params or bool(page.query("group"))
        events = self._alerts.history(page.now - DAY, MAX_EVENTS, page.lang)
        sections = [
            page.section(
                "alerts",
                "alerts_full",
                polite=True,
                everything=everything,
                untold=untold(page),
                actions=_actions(page, rows[:MAX_ROWS_WITH_ACTIONS]) if narrowed else {},
                **page.limited(rows),
            ),
            page.section("silences", "silences", silences=self._alerts.silences()),
            page.section("history", "history", events=[(event, subject_labels(event.labels)) for event in events]),
            page.section("messages", "messages", messages=self._alerts.deliveries(MAX_DELIVERIES)),
        ]
        return page.respond(
            "alerts.html", page.t("nav.alerts"), *sections, everything="all" in page.request.query_params,
            narrowed=narrowed, durations=DURATIONS, matchers="",
        )  # fmt: skip

    def preview(self, page: PageRequest) -> Response:
        """The alerts that a silence would mute."""
        request = SilenceRequest(matchers=_wanted_matchers(page), duration=page.query("duration") or "2h")
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


def _actions(page: PageRequest, rows: list[AlertRow]) -> dict[str, list[AlertAction]]:
    """What the principal can do about each alert, by fingerprint."""
    index = ClusterIndex(page.deps.cluster.view())
    return {row.alert.fingerprint: actions_for(page, row.alert, index) for row in rows}


def actions_for(page: PageRequest, alert: LocalizedAlert, index: ClusterIndex) -> list[AlertAction]:
    """What the principal can do about an alert."""
    node = alert.labels.get("node")
    policies = page.deps.cleanup.policies_on(node, "images") if page.deps.cleanup is not None and node else ()
    return [action for action in alert_actions(alert, index, policies) if action.allowed_to(page.principal)]


def untold(page: PageRequest) -> str:
    """Why a firing alert names no receiver that was notified."""
    return page.t("alert.nobody" if page.deps.data.has_receivers else "alert.no-receiver")


def _wanted_matchers(page: PageRequest) -> tuple[str, ...]:
    """Matchers separated by spaces, or each of them in a parameter of its own, in which it may contain spaces."""
    given = page.request.query_params.getlist("matcher")[: MAX_MATCHERS + 1]
    return tuple(given) or tuple(page.query("matchers").split())


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
