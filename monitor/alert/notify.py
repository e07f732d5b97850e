"""Notification decisions: what is sent to which receiver now, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from msgspec.structs import replace

from monitor.alert.model import Alert, AlertState, Notification, NotificationLogEntry, Phase, alertname
from monitor.alert.mute import MatchCache, MuteContext
from monitor.alert.needs_update import GroupState, log_entry_after, needs_update, next_update_at, notification
from monitor.alert.owner_preferences import mentioning
from monitor.alert.routes import NotifyPolicy, Route, shortest_intervals
from monitor.facts.findings import Severity

GroupKey = tuple[str, str]  # receiver and group
MAX_REMEMBERED_PER_NODE = 1000  # resolved alerts; an agent can report others with every poll


@dataclass(frozen=True)
class NotifyDecision:
    """Notifications to send, changes of the notification log (None: delete the entry), and alerts to forget.

    Until `next_at` there is nothing more to decide, unless alerts change or another policy comes into force.
    """

    notifications: tuple[Notification, ...] = ()
    log_changes: dict[GroupKey, NotificationLogEntry | None] = field(default_factory=dict)
    forgotten: tuple[str, ...] = ()
    next_at: float = field(default=inf, compare=False)


def decide(state: AlertState, policy: NotifyPolicy, now: float, cache: MatchCache | None = None) -> NotifyDecision:
    """Notifications that are due now.

    An alert stays in the group in which a receiver was first notified about it, whatever changes later. Log entries of
    receivers without a route are deleted.
    """
    context = MuteContext(state.alerts, policy, now, cache)
    groups = _group_states(state, policy, context, now)
    next_at = context.inhibition.ends_at
    notifications = []
    changes: dict[GroupKey, NotificationLogEntry | None] = {
        key: None for key in state.notification_log if key not in groups
    }
    for key, group in groups.items():
        reason, after = None, group.logged
        if group.routes:
            timing = shortest_intervals(group.routes)
            reason = needs_update(group.logged, group.firing, group.resolved, timing, now)
            if reason is None:
                next_at = min(next_at, next_update_at(group.logged, group.firing, group.resolved, timing))
            else:
                notifications.append(
                    mentioning(notification(group, reason, context.inhibition, now), policy.owners, now)
                )
                after = log_entry_after(group, now)
                next_at = min(next_at, now + timing.group_interval, now + timing.repeat)
        if after != state.notification_log.get(key):
            changes[key] = after
    entries = {**state.notification_log, **changes}.values()
    logged = {fingerprint for entry in entries if entry is not None for fingerprint in entry.firing}
    forgotten, forget_at = _forgotten(state.alerts, logged, policy.remember, now)
    return NotifyDecision(tuple(notifications), changes, forgotten, min(next_at, forget_at))


def _group_states(
    state: AlertState, policy: NotifyPolicy, context: MuteContext, now: float
) -> dict[GroupKey, GroupState]:
    """State of every group that a receiver was or may be notified about."""
    # For logged alerts that take another route now.
    any_route = {receiver: route for route in reversed(policy.routes) for receiver in route.receivers}
    groups: dict[GroupKey, GroupState] = {}
    placed: set[tuple[str, str]] = set()
    for (receiver, name), entry in state.notification_log.items():
        if receiver not in any_route:
            continue
        group = groups[receiver, name] = GroupState(receiver, name)
        group.logged = logged = _known(entry, state.alerts, now)
        for fingerprint, severity in logged.firing.items() if logged is not None else ():
            placed.add((receiver, fingerprint))
            _place_logged(group, state.alerts[fingerprint], severity, any_route[receiver], context)
    for alert in state.alerts.values():
        if _is_present(alert):
            _place_new(groups, placed, alert, context)
    return groups


def _known(entry: NotificationLogEntry, alerts: Mapping[str, Alert], now: float) -> NotificationLogEntry | None:
    """Log entry of the alerts that still exist, not later than now; None if none does."""
    if entry.firing and entry.at <= now and entry.firing.keys() <= alerts.keys():
        return entry
    known = {fingerprint: severity for fingerprint, severity in entry.firing.items() if fingerprint in alerts}
    return replace(entry, at=min(entry.at, now), firing=known) if known else None


def _place_logged(group: GroupState, alert: Alert, logged: Severity, any_route: Route, context: MuteContext) -> None:
    """Place an alert that the receiver was notified about with severity `logged`."""
    status, resolved = context.status(alert), alert.phase is Phase.RESOLVED
    taken = context.routes(alert).get(group.receiver)
    route = taken or any_route
    if route not in group.routes:
        group.routes.append(route)
    # For a resolved alert the severity that was sent counts, for others the current one.
    quiet = context.quiet(alert, logged if resolved else alert.finding.severity, route)
    if status.silent or quiet or (taken is None and not resolved):
        group.muted[alert.fingerprint] = logged
    elif resolved:
        group.resolved[alert.fingerprint] = alert
    elif status.inhibited_by is not None or not _is_present(alert):
        group.listed[alert.fingerprint] = alert
    else:
        group.firing[alert.fingerprint] = alert


def _place_new(
    groups: dict[GroupKey, GroupState], placed: set[tuple[str, str]], alert: Alert, context: MuteContext
) -> None:
    """Place a firing alert in the group of every receiver that was not yet notified about it and may be."""
    status = context.status(alert)
    if status.silent or status.inhibited_by is not None:
        return
    name = alert.group or alertname(alert.finding.rule)
    for receiver, route in context.routes(alert).items():
        if (receiver, alert.fingerprint) in placed or context.quiet(alert, alert.finding.severity, route):
            continue
        group = groups.get((receiver, name))
        if group is None:
            group = groups[receiver, name] = GroupState(receiver, name)
        group.firing[alert.fingerprint] = alert
        if route not in group.routes:
            group.routes.append(route)


def _is_present(alert: Alert) -> bool:
    """Whether a firing alert is still found; one that may resolve any moment is not sent."""
    return alert.phase is Phase.FIRING and alert.absent_since is None


def _forgotten(
    alerts: Mapping[str, Alert], logged: set[str], remember: float, now: float
) -> tuple[tuple[str, ...], float]:
    """Alerts that are resolved, in no log entry, and too old to be flapping, or too many of one node.

    The second value is the time at which the next one is too old.
    """
    forgotten: list[str] = []
    next_at = inf
    remembered: defaultdict[str, list[Alert]] = defaultdict(list)
    for fingerprint, alert in alerts.items():
        if alert.phase is not Phase.RESOLVED or fingerprint in logged:
            continue
        if alert.resolved_at is None or now - alert.resolved_at >= remember:
            forgotten.append(fingerprint)
        else:
            next_at = min(next_at, alert.resolved_at + remember)
            remembered[alert.finding.labels.get("node", "")].append(alert)
    for of_node in remembered.values():
        if len(of_node) > MAX_REMEMBERED_PER_NODE:
            of_node.sort(key=lambda alert: alert.resolved_at or 0.0)
            forgotten += [alert.fingerprint for alert in of_node[:-MAX_REMEMBERED_PER_NODE]]
    return tuple(forgotten), next_at
