"""Who is told what, now, and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from monitor.alert.inhibition import inhibition
from monitor.alert.labels import labels_of
from monitor.alert.model import Alert, Notification, NotificationLogEntry, Phase, alertname
from monitor.alert.needs_update import GroupState, log_entry_after, needs_update, notification
from monitor.alert.routes import Route, receivers_of, routes_for, shortest_intervals
from monitor.alert.silences import Silence, active_silences, matching_silence
from monitor.alert.windows import MaintenanceWindow, matching_window, open_windows
from monitor.facts.findings import Severity


@dataclass(frozen=True)
class NotifyPolicy:
    """What was configured about telling, and the silences.

    After its cause is over a symptom is given `linger` seconds to be over too. An alert that is over is remembered for
    `remember` seconds, so that its return is noticed as such.
    """

    routes: tuple[Route, ...]
    silences: tuple[Silence, ...] = ()
    windows: tuple[MaintenanceWindow, ...] = ()
    cluster: str | None = None
    linger: float = 60.0
    remember: float = 1800.0


@dataclass(frozen=True)
class AlertState:
    """All alerts by fingerprint, and what each receiver was last told about each group."""

    alerts: Mapping[str, Alert] = field(default_factory=dict)
    told: Mapping[tuple[str, str], NotificationLogEntry] = field(default_factory=dict)


@dataclass(frozen=True)
class NotifyDecision:
    """What to send, what each receiver now knows (None: forget), and the alerts that can be forgotten."""

    notifications: tuple[Notification, ...] = ()
    told: dict[tuple[str, str], NotificationLogEntry | None] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()


def decide(book: AlertState, policy: NotifyPolicy, now: float) -> NotifyDecision:
    """Given the alerts and what was told, return what is to be told now.

    What a receiver was told about an alert decides the group in which it hears more of it, whatever happened since.
    What a receiver that is in no route was told is forgotten.
    """
    scene = _Scene(book.alerts, policy, now)
    standings = _standings(book, scene, now)
    notifications = []
    changes: dict[tuple[str, str], NotificationLogEntry | None] = {
        key: None for key in book.told if key not in standings
    }
    for key, standing in standings.items():
        reason = None
        if standing.routes:
            reason = needs_update(
                standing.told, standing.firing, standing.over, shortest_intervals(standing.routes), now
            )
        after = standing.told
        if reason is not None:
            notifications.append(notification(standing, reason, scene.inhibition, now))
            after = log_entry_after(standing, now)
        if after != book.told.get(key):
            changes[key] = after
    known = {fingerprint for key, told in {**book.told, **changes}.items() if told for fingerprint in told.firing}
    return NotifyDecision(tuple(notifications), changes, _forgotten(book.alerts, known, policy.remember, now))


class _Look(NamedTuple):
    """What holds for an alert: whether nothing may be told, whether something explains it, and to whom it goes how."""

    muted: bool
    inhibited: bool
    routes: dict[str, Route]


class _Scene:
    """What holds at this moment. Each alert is looked at once, however many are told of it."""

    def __init__(self, alerts: Mapping[str, Alert], policy: NotifyPolicy, now: float) -> None:
        self._policy = policy
        self._now = now
        self._silences = active_silences(policy.silences, now)
        self._windows = open_windows(policy.windows, now)
        self._quiet = {route.quiet for route in policy.routes if route.quiet is not None and route.quiet.contains(now)}
        self._first_routes = {receiver: route for route in reversed(policy.routes) for receiver in route.receivers}
        self._looks: dict[str, _Look] = {}
        self.receivers = receivers_of(policy.routes)
        self.inhibition = inhibition(alerts, policy.linger, now)

    def look(self, alert: Alert) -> _Look:
        found = self._looks.get(alert.fingerprint)
        if found is None:
            found = self._looks[alert.fingerprint] = self._look_at(alert)
        return found

    def any_route(self, receiver: str) -> Route:
        """Return a route to a receiver, for what it was told of and what goes elsewhere now."""
        return self._first_routes[receiver]

    def hushed(self, alert: Alert, severity: Severity, route: Route) -> bool:
        """Return whether it is too quiet an hour for something this bad."""
        if route.quiet is None or severity is Severity.CRITICAL or route.quiet not in self._quiet:
            return False
        return not self.inhibition.urgent(alert.fingerprint)

    def _look_at(self, alert: Alert) -> _Look:
        labels = labels_of(alert.finding, self._policy.cluster)
        muted = matching_silence(labels, self._silences, self._now) or matching_window(labels, self._windows)
        routes: dict[str, Route] = {}
        for route in routes_for(labels, self._policy.routes):
            for receiver in route.receivers:
                # That somebody cannot be reached is told to others.
                if labels.get("service") != f"receiver/{receiver}":
                    routes.setdefault(receiver, route)
        return _Look(muted is not None, alert.fingerprint in self.inhibition.causes, routes)


def _standings(book: AlertState, scene: _Scene, now: float) -> dict[tuple[str, str], GroupState]:
    """Return how each receiver stands to each group of which it was told or may be told."""
    standings: dict[tuple[str, str], GroupState] = {}
    placed: set[tuple[str, str]] = set()
    for (receiver, group), told in book.told.items():
        if receiver not in scene.receivers:
            continue
        known = {own: severity for own, severity in told.firing.items() if own in book.alerts}
        standing = standings[receiver, group] = GroupState(receiver, group)
        standing.told = replace(told, at=min(told.at, now), firing=known) if known else None
        for own, severity in known.items():
            placed.add((receiver, own))
            _place_told(standing, book.alerts[own], severity, scene)
    for alert in book.alerts.values():
        if _is_there(alert):
            _place_untold(standings, placed, alert, scene)
    return standings


def _place_told(standing: GroupState, alert: Alert, severity: Severity, scene: _Scene) -> None:
    """Put an alert that the receiver was told of, as this bad, where it stands now."""
    look, over = scene.look(alert), alert.phase is Phase.RESOLVED
    taken = look.routes.get(standing.receiver)
    route = taken or scene.any_route(standing.receiver)
    standing.routes.add(route)
    # What is over was as bad as was told; what is still there is as bad as it is.
    hushed = scene.hushed(alert, severity if over else alert.finding.severity, route)
    if look.muted or hushed or (taken is None and not over):
        standing.kept[alert.fingerprint] = severity
    elif over:
        standing.over[alert.fingerprint] = alert
    elif look.inhibited or not _is_there(alert):
        standing.beside[alert.fingerprint] = alert
    else:
        standing.firing[alert.fingerprint] = alert


def _place_untold(
    standings: dict[tuple[str, str], GroupState], placed: set[tuple[str, str]], alert: Alert, scene: _Scene
) -> None:
    """Put an alert that fires with everybody who was not told of it and may be."""
    look = scene.look(alert)
    if look.muted or look.inhibited:
        return
    group = alert.group or alertname(alert.finding.rule)
    for receiver, route in look.routes.items():
        if (receiver, alert.fingerprint) in placed or scene.hushed(alert, alert.finding.severity, route):
            continue
        standing = standings.get((receiver, group))
        if standing is None:
            standing = standings[receiver, group] = GroupState(receiver, group)
        standing.firing[alert.fingerprint] = alert
        standing.routes.add(route)


def _is_there(alert: Alert) -> bool:
    """Return whether an alert fires and is still found: nobody is told of what may be over in a moment."""
    return alert.phase is Phase.FIRING and alert.absent_since is None


def _forgotten(alerts: Mapping[str, Alert], known: set[str], remember: float, now: float) -> tuple[str, ...]:
    """Return the alerts that are over, that nobody waits to hear of, and that are too old to be flapping."""
    return tuple(
        own
        for own, alert in alerts.items()
        if alert.phase is Phase.RESOLVED
        and own not in known
        and (alert.resolved_at is None or now - alert.resolved_at >= remember)
    )
