"""Muting: whether and why notifications about an alert are held back. Delivery and the page both decide it here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from monitor.alert.inhibition import inhibition
from monitor.alert.model import Alert, AlertState, labels_of
from monitor.alert.routes import NotifyPolicy, Route, routes_by_receiver
from monitor.alert.silences import active_silences, matching_silence
from monitor.alert.windows import matching_window, open_windows
from monitor.facts.base import Fact
from monitor.facts.findings import Severity


@dataclass(frozen=True)
class MuteStatus:
    """What mutes an alert for all receivers: a silence (its id), maintenance, a cause (its fingerprint)."""

    silenced_by: str | None = None
    in_maintenance: bool = False
    inhibited_by: str | None = None

    @property
    def silent(self) -> bool:
        """Whether nothing at all may be sent, not even that the alert resolved; inhibition allows that."""
        return self.silenced_by is not None or self.in_maintenance


class AlertView(Fact, frozen=True, kw_only=True):
    """An alert, why it is muted, and the receivers that know that it fires (`told`).

    `quiet` are the receivers that are not notified because of quiet hours.
    """

    alert: Alert
    silenced_by: str | None = None
    in_maintenance: bool = False
    explained_by: str | None = None
    told: tuple[str, ...] = ()
    quiet: tuple[str, ...] = ()


class MuteContext:
    """Muting and routing of all alerts at one moment; each alert is evaluated once."""

    def __init__(self, alerts: Mapping[str, Alert], policy: NotifyPolicy, now: float) -> None:
        self._policy = policy
        self._silences = active_silences(policy.silences, now)
        self._windows = open_windows(policy.windows, now)
        self._quiet = {route.quiet for route in policy.routes if route.quiet is not None and route.quiet.contains(now)}
        self._evaluated: dict[str, tuple[MuteStatus, dict[str, Route]]] = {}
        self.inhibition = inhibition(alerts, policy.linger, now)

    def status(self, alert: Alert) -> MuteStatus:
        return self._evaluate(alert)[0]

    def routes(self, alert: Alert) -> Mapping[str, Route]:
        """Route of the alert to each of its receivers."""
        return self._evaluate(alert)[1]

    def quiet(self, alert: Alert, severity: Severity, route: Route) -> bool:
        """Whether quiet hours hold back an alert of this severity; not if it inhibits a critical one."""
        if route.quiet is None or severity is Severity.CRITICAL or route.quiet not in self._quiet:
            return False
        return not self.inhibition.urgent(alert.fingerprint)

    def _evaluate(self, alert: Alert) -> tuple[MuteStatus, dict[str, Route]]:
        known = self._evaluated.get(alert.fingerprint)
        if known is None:
            labels = labels_of(alert.finding, self._policy.cluster)
            silence = matching_silence(labels, self._silences)
            status = MuteStatus(
                silenced_by=None if silence is None else silence.id,
                in_maintenance=matching_window(labels, self._windows) is not None,
                inhibited_by=self.inhibition.causes.get(alert.fingerprint),
            )
            known = self._evaluated[alert.fingerprint] = status, routes_by_receiver(labels, self._policy.routes)
        return known


def alert_views(state: AlertState, policy: NotifyPolicy, now: float) -> tuple[AlertView, ...]:
    """All alerts with what mutes them and who was notified."""
    context = MuteContext(state.alerts, policy, now)
    notified: dict[str, list[str]] = {}
    for (receiver, _), entry in sorted(state.notification_log.items()):
        for fingerprint in entry.firing:
            notified.setdefault(fingerprint, []).append(receiver)
    return tuple(_view(alert, context, notified.get(alert.fingerprint, [])) for alert in state.alerts.values())


def _view(alert: Alert, context: MuteContext, notified: list[str]) -> AlertView:
    status, routes = context.status(alert), context.routes(alert)
    severity = alert.finding.severity
    return AlertView(
        alert=alert,
        silenced_by=status.silenced_by,
        in_maintenance=status.in_maintenance,
        explained_by=status.inhibited_by,
        told=tuple(notified),
        quiet=tuple(receiver for receiver, route in routes.items() if context.quiet(alert, severity, route)),
    )
