"""Muting: whether and why notifications about an alert are held back. Delivery and the page both decide it here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as changed

from msgspec.structs import replace

from monitor.alert.inhibition import inhibition
from monitor.alert.model import Alert, AlertState, Phase, labels_of
from monitor.alert.routes import NotifyPolicy, Route, routes_by_receiver
from monitor.alert.silences import Silence, active_silences, matching_silence
from monitor.alert.windows import MaintenanceWindow, QuietHours, matching_window, open_windows
from monitor.facts.base import Fact
from monitor.facts.findings import Severity

MIN_CACHED_MATCHES = 1000


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
    """An alert, why it is muted, and the receivers that know that it fires, or knew until it resolved (`told`).

    `quiet` are the receivers that are not notified because of quiet hours.
    """

    alert: Alert
    silenced_by: str | None = None
    in_maintenance: bool = False
    explained_by: str | None = None
    told: tuple[str, ...] = ()
    quiet: tuple[str, ...] = ()


@dataclass(frozen=True)
class PolicyInForce:
    """A policy at one moment: only the silences, maintenance windows and quiet hours that apply then."""

    routes: tuple[Route, ...]
    silences: tuple[Silence, ...]
    windows: tuple[MaintenanceWindow, ...]
    quiet: frozenset[QuietHours]
    cluster: str | None
    linger: float
    remember: float


def policy_in_force(policy: NotifyPolicy, now: float) -> PolicyInForce:
    """What of a policy applies now."""
    hours = {route.quiet for route in policy.routes if route.quiet is not None}
    return PolicyInForce(
        routes=policy.routes,
        silences=active_silences(policy.silences, now),
        windows=open_windows(policy.windows, now),
        quiet=frozenset(quiet for quiet in hours if quiet.contains(now)),
        cluster=policy.cluster,
        linger=policy.linger,
        remember=policy.remember,
    )


@dataclass(frozen=True)
class PolicyMatch:
    """What a policy says about an alert with these labels, severity and cause. `status` is without inhibition."""

    labels: Mapping[str, str]
    routed: Mapping[str, str]
    severity: Severity
    cause: str
    status: MuteStatus
    routes: Mapping[str, Route]  # by receiver

    def applies_to(self, alert: Alert) -> bool:
        finding = alert.finding
        same = self.severity is finding.severity and self.cause == finding.cause
        return same and self.labels == finding.labels and self.routed == alert.routed


class MatchCache:
    """Matches by fingerprint, remembered for as long as the same policy is in force. Thread-safe."""

    def __init__(self) -> None:
        self._current: tuple[PolicyInForce | None, dict[str, PolicyMatch]] = (None, {})

    def of(self, policy: PolicyInForce, alert_count: int) -> dict[str, PolicyMatch]:
        """Known matches of a policy. They are dropped when most of them are about alerts that are gone."""
        known, matches = self._current
        if known != policy or len(matches) > 2 * alert_count + MIN_CACHED_MATCHES:
            matches = {}
            self._current = (policy, matches)
        return matches


class MuteContext:
    """Muting and routing of all alerts at one moment."""

    def __init__(
        self, alerts: Mapping[str, Alert], policy: NotifyPolicy, now: float, cache: MatchCache | None = None
    ) -> None:
        self._policy = policy_in_force(policy, now)
        self._matches = (cache or MatchCache()).of(self._policy, len(alerts))
        self.inhibition = inhibition(alerts, policy.linger, now)

    def status(self, alert: Alert) -> MuteStatus:
        status, cause = self._match(alert).status, self.inhibition.causes.get(alert.fingerprint)
        return status if cause is None else changed(status, inhibited_by=cause)

    def routes(self, alert: Alert) -> Mapping[str, Route]:
        """Route of the alert to each of its receivers."""
        return self._match(alert).routes

    def quiet(self, alert: Alert, severity: Severity, route: Route) -> bool:
        """Whether quiet hours hold back an alert of this severity; not if it inhibits a critical one."""
        if route.quiet is None or severity is Severity.CRITICAL or route.quiet not in self._policy.quiet:
            return False
        return not self.inhibition.urgent(alert.fingerprint)

    def _match(self, alert: Alert) -> PolicyMatch:
        known = self._matches.get(alert.fingerprint)
        if known is None or not known.applies_to(alert):
            known = self._matches[alert.fingerprint] = _policy_match(alert, self._policy)
        return known


def _policy_match(alert: Alert, policy: PolicyInForce) -> PolicyMatch:
    finding = alert.finding
    labels = labels_of(finding, policy.cluster)
    routed = labels_of(replace(finding, labels=alert.routed), policy.cluster) if alert.routed else labels
    silence = matching_silence(labels, policy.silences)
    return PolicyMatch(
        labels=finding.labels,
        routed=alert.routed,
        severity=finding.severity,
        cause=finding.cause,
        status=MuteStatus(
            silenced_by=None if silence is None else silence.id,
            in_maintenance=matching_window(labels, policy.windows) is not None,
        ),
        routes=routes_by_receiver(routed, policy.routes),
    )


def alert_views(
    state: AlertState, policy: NotifyPolicy, now: float, cache: MatchCache | None = None
) -> tuple[AlertView, ...]:
    """All alerts with what mutes them and who was notified."""
    context = MuteContext(state.alerts, policy, now, cache)
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
        told=alert.notified if alert.phase is Phase.RESOLVED else tuple(notified),
        quiet=tuple(receiver for receiver, route in routes.items() if context.quiet(alert, severity, route)),
    )
