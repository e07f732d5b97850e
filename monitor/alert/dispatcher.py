"""Dispatcher: turns findings into alerts, decides on notifications and hands them to the sender.

It runs after each evaluation, and on its own clock in between: some notifications become due without new findings.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from msgspec.structs import replace

from monitor.alert.delivery.sender import Sender
from monitor.alert.lifecycle import GROUP_BY, AlertTimings, advance, next_change_at
from monitor.alert.model import (
    Acknowledgement,
    Alert,
    AlertState,
    Notification,
    NotificationSubject,
    Phase,
    subject_of,
)
from monitor.alert.mute import AlertView, MatchCache, PolicyInForce, alert_views, policy_in_force
from monitor.alert.notify import NotifyDecision, decide
from monitor.alert.owner_preferences import to_owners
from monitor.alert.routes import NotifyPolicy
from monitor.alert.store import AlertStore
from monitor.base.sqlite import DatabaseError
from monitor.base.threads import Periodic
from monitor.facts.findings import Finding

log = logging.getLogger(__name__)

TICK_SECONDS = 0.25
IDLE_FACTOR = 4.0  # idle for at least 4x the duration of the last tick, capping the clock at 20 % of a core
FRESH_SECONDS = 15.0  # age up to which findings count as current
PRUNE_INTERVAL_SECONDS = 3600.0

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What was computed from `inputs` at `at` holds until `next_at`, unless they change or the clock is set back."""

    inputs: T
    at: float
    next_at: float

    def holds(self, inputs: T, now: float) -> bool:
        return self.at <= now < self.next_at and self.inputs == inputs


class Dispatcher:
    """Runs between start() and stop(), together with the sender. Call `update` after each evaluation."""

    def __init__(
        self,
        store: AlertStore,
        sender: Sender,
        policy_of: Callable[[], NotifyPolicy],
        timings: AlertTimings,
        group_by: tuple[str, ...] = GROUP_BY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._sender = sender
        # Adds what others know about notifications that are due, for example links for owners.
        self.annotate: Callable[[tuple[Notification, ...]], tuple[Notification, ...]] = lambda same: same
        self._policy_of = policy_of
        self._timings = timings
        self._group_by = group_by
        self._now = now
        self._lock = threading.Lock()
        self._state = AlertState()
        self._matches = MatchCache()
        self._advanced: Outcome[tuple[Finding, ...]] | None = None
        self._decided: Outcome[PolicyInForce] | None = None
        self._findings: tuple[Finding, ...] | None = None
        self.findings: tuple[Finding, ...] | None = (
            None  # those behind the current alerts; None before the first update
        )
        self._updated_at = 0.0  # monotonic
        self._prune_at = 0.0  # monotonic
        self._clock = Periodic("alerts", self._tick, TICK_SECONDS, initial_delay=TICK_SECONDS)

    def start(self) -> None:
        """Load the state of the previous process and start sending."""
        self._state = self._store.load()
        self._sender.start(self.still_firing)
        self._clock.start()

    def stop(self) -> None:
        self._clock.stop(1.0)
        self._sender.stop()

    def update(self, findings: Iterable[Finding]) -> None:
        """Process all findings of an evaluation."""
        with self._lock:
            self._findings = tuple(findings)
            self._updated_at = time.monotonic()
            self._advanced = None
            self._process()

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes | None]) -> None:
        """Send notifications that do not come from findings, and store `notes` (None: delete) in one transaction."""
        notifications = to_owners(notifications, self._policy_of().owners, self._now())
        self._store.send(notifications, notes)
        self._sender.wake({notification.receiver for notification in notifications})

    @property
    def state(self) -> AlertState:
        """Alerts and notification log as of the last update or tick."""
        return self._state

    def still_firing(self, receiver: str) -> tuple[NotificationSubject, ...]:
        """Alerts that a receiver was notified about and that still fire."""
        state = self._state
        entries = (entry for (name, _), entry in state.notification_log.items() if name == receiver)
        notified = {fingerprint for entry in entries for fingerprint in entry.firing}
        alerts = (state.alerts[fingerprint] for fingerprint in sorted(notified) if fingerprint in state.alerts)
        return tuple(subject_of(alert, alert.phase, fresh=False) for alert in alerts if alert.phase is Phase.FIRING)

    def snapshot(self) -> tuple[AlertView, ...]:
        """All alerts with what mutes them and who was notified."""
        return alert_views(self._state, self._policy_of(), self._now(), self._matches)

    def acknowledge(self, fingerprint: str, by: str, comment: str) -> Alert:
        """Record who takes care of a firing alert. Raise ValueError if there is none."""
        with self._lock:
            alert, now = self._state.alerts.get(fingerprint), self._now()
            if alert is None or alert.phase is not Phase.FIRING:
                raise ValueError("this alert is not firing")
            alert = replace(alert, acknowledged=Acknowledgement(at=now, by=by, comment=comment))
            self._store.record({fingerprint: alert}, NotifyDecision(), now)
            self._state = AlertState({**self._state.alerts, fingerprint: alert}, self._state.notification_log)
            return alert

    def _tick(self) -> float:
        started = time.monotonic()
        with self._lock:
            self._process()
        if started >= self._prune_at:
            self._prune()
        due_in = min(TICK_SECONDS, self._seconds_until_due())
        return max(due_in, IDLE_FACTOR * (time.monotonic() - started))

    def _seconds_until_due(self) -> float:
        """Time until a notification is due; infinite if none is, or if it is overdue because it cannot be recorded."""
        decided = self._decided
        left = decided.next_at - self._now() if decided is not None else inf
        return left if left > 0 else inf

    def _process(self) -> None:
        """Update alerts and notify. Before the first evaluation nothing happens: stored alerts may have resolved."""
        if self._findings is None:
            return
        now = self._now()
        try:
            self._decide(self._advance(self._findings, now), now)
        except DatabaseError as error:
            self._advanced = None
            log.error("cannot write alerts, will retry: %s", error)
        except Exception:  # one odd finding must not end alerting; the next evaluation may succeed
            self._advanced = None
            log.exception("cannot process alerts")

    def _advance(self, findings: tuple[Finding, ...], now: float) -> Mapping[str, Alert]:
        """Alerts now: the same object if neither findings nor time have changed any."""
        alerts = self._state.alerts
        # Stale findings prove neither that an alert is still present nor that another one resolved.
        if time.monotonic() - self._updated_at >= FRESH_SECONDS:
            return alerts
        findings += self._sender.receiver_findings()
        if self._advanced is not None and self._advanced.holds(findings, now):
            return alerts
        self.findings = findings
        advanced = advance(alerts, findings, self._timings, self._group_by, now)
        self._advanced = Outcome(findings, now, next_change_at(advanced.values(), self._timings))
        return advanced

    def _decide(self, alerts: Mapping[str, Alert], now: float) -> None:
        """Record changed alerts, and decide about notifications unless the last decision still holds."""
        before, policy = self._state, self._policy_of()
        changed = changed_alerts(before.alerts, alerts) if alerts is not before.alerts else {}
        in_force, state = policy_in_force(policy, now), AlertState(alerts, before.notification_log)
        if not changed and self._decided is not None and self._decided.holds(in_force, now):
            self._state = state
            return
        self._decided = None
        decision = decide(state, policy, now, self._matches)
        if decision.notifications:
            decision = dataclasses.replace(decision, notifications=self.annotate(decision.notifications))
        notified = newly_notified(alerts, decision.notifications)
        alerts, changed = {**alerts, **notified}, {**changed, **notified}
        if changed or decision != NotifyDecision():
            self._store.record(changed, decision, now)
        self._state = next_state(alerts, before, decision)
        self._decided = Outcome(in_force, now, decision.next_at)
        self._sender.wake({notification.receiver for notification in decision.notifications})

    def _prune(self) -> None:
        self._prune_at = time.monotonic() + PRUNE_INTERVAL_SECONDS
        try:
            self._store.prune(self._now())
        except DatabaseError as error:
            log.warning("cannot remove old alerts: %s", error)


def changed_alerts(before: Mapping[str, Alert], after: Mapping[str, Alert]) -> dict[str, Alert | None]:
    """Alerts that have to be written; None for those that are gone.

    The time of the last sighting and the figures in the evidence change with every evaluation and are found again after
    a restart, so they do not count as changes.
    """
    changed: dict[str, Alert | None] = dict.fromkeys(before.keys() - after.keys())
    for fingerprint, alert in after.items():
        known = before.get(fingerprint)
        if known is None or (known is not alert and _essence(known) != _essence(alert)):
            changed[fingerprint] = alert
    return changed


def newly_notified(alerts: Mapping[str, Alert], notifications: Iterable[Notification]) -> dict[str, Alert]:
    """Alerts that these notifications change: with new receivers, and routed by their current labels from now on."""
    notified: dict[str, Alert] = {}
    for notification in notifications:
        for subject in notification.subjects:
            alert = notified.get(subject.fingerprint) or alerts.get(subject.fingerprint)
            if alert is None:
                continue
            if notification.receiver not in alert.notified:
                receivers = (*alert.notified, notification.receiver)
                alert = notified[subject.fingerprint] = replace(alert, notified=receivers)
            if alert.routed:
                notified[subject.fingerprint] = replace(alert, routed={})
    return notified


def _essence(alert: Alert) -> tuple[object, ...]:
    finding = alert.finding
    return (
        alert.phase,
        alert.first_seen_at,
        alert.fired_at,
        alert.resolved_at,
        alert.absent_since,
        alert.group,
        alert.firings,
        alert.flapping,
        alert.notified,
        alert.acknowledged,
        alert.announced,
        alert.routed,
        finding.labels,
        finding.severity,
        finding.cause,
        finding.explained_by,
        finding.held,
    )


def next_state(alerts: Mapping[str, Alert], before: AlertState, decision: NotifyDecision) -> AlertState:
    """State after a decision was recorded."""
    entries, forgotten = {**before.notification_log, **decision.log_changes}, set(decision.forgotten)
    return AlertState(
        alerts={fingerprint: alert for fingerprint, alert in alerts.items() if fingerprint not in forgotten},
        notification_log={key: entry for key, entry in entries.items() if entry is not None},
    )
