"""Keeps the book of alerts: takes in what is found, decides who is told, and hands it to the post.

It is called after each look, and looks at the clock itself in between: some things are due without anything new.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from monitor.alert.delivery.sender import Sender
from monitor.alert.lifecycle import GROUP_BY, AlertTimings, advance
from monitor.alert.model import Alert, Notification, NotificationSubject, Phase
from monitor.alert.muted import AlertView, alert_views
from monitor.alert.notify import AlertState, NotifyDecision, NotifyPolicy, decide
from monitor.alert.store import AlertStore
from monitor.base.sqlite import DatabaseError
from monitor.facts.findings import Finding

log = logging.getLogger(__name__)

TICK_SECONDS = 0.25
IDLE_FACTOR = 4.0  # however many alerts there are, the clock is watched with no more than a fifth of a core
FRESH_SECONDS = 15.0  # for how long what was found is taken to be still so, without another look
PRUNE_INTERVAL_SECONDS = 3600.0


class Dispatcher:
    """Works between start() and stop(), together with the post. `found` is called after each look."""

    def __init__(
        self,
        store: AlertStore,
        post: Sender,
        policy_of: Callable[[], NotifyPolicy],
        timings: AlertTimings,
        group_by: tuple[str, ...] = GROUP_BY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._post = post
        self._policy_of = policy_of
        self._timings = timings
        self._group_by = group_by
        self._now = now
        self._lock = threading.Lock()
        self._book = AlertState()
        self._findings: tuple[Finding, ...] | None = None
        self.findings: tuple[Finding, ...] | None = None  # as alerts were last made of them; None before the first look
        self._looked_at = 0.0  # of the monotonic clock
        self._prune_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch_the_clock, name="alerts", daemon=True)

    def start(self) -> None:
        """Go on where the last process ended, and begin to send."""
        self._book = self._store.load()
        self._post.start(self.still_firing)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(1.0)
        self._post.stop()

    def found(self, findings: Iterable[Finding]) -> None:
        """Take in all that a look has found."""
        with self._lock:
            self._findings = tuple(findings)
            self._looked_at = time.monotonic()
            self._work()

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None:
        """Send what does not come from findings, and remember something about that in the same transaction."""
        self._store.send(notifications, notes)
        self._post.wake({each.receiver for each in notifications})

    @property
    def state(self) -> AlertState:
        """Return the alerts, and what was told, as of the last look or tick."""
        return self._book

    def still_firing(self, receiver: str) -> tuple[NotificationSubject, ...]:
        """Return what a receiver was told of and still fires."""
        book = self._book
        told = {own for (name, _), told in book.told.items() if name == receiver for own in told.firing}
        firing = (book.alerts[own] for own in sorted(told) if own in book.alerts)
        return tuple(
            NotificationSubject(
                fingerprint=alert.fingerprint,
                finding=alert.finding,
                phase=alert.phase,
                since=alert.since,
                flapping=alert.flapping,
                fresh=False,
            )
            for alert in firing
            if alert.phase is Phase.FIRING
        )

    def snapshot(self) -> tuple[AlertView, ...]:
        """Return all alerts, who was told, and why nothing is told about some."""
        return alert_views(self._book, self._policy_of(), self._now())

    def _watch_the_clock(self) -> None:
        took = 0.0
        while not self._stopping.wait(max(TICK_SECONDS, IDLE_FACTOR * took)):
            began = time.monotonic()
            with self._lock:
                self._work()
            if began >= self._prune_at:
                self._prune()
            took = time.monotonic() - began

    def _work(self) -> None:
        """Bring the book up to date. Nothing is done before the first look: what is over by now is not known yet."""
        if self._findings is None:
            return
        try:
            self._advance(self._findings)
        except DatabaseError as error:
            log.error("alerts cannot be written, it is tried again: %s", error)
        except Exception:  # whatever one odd finding provokes, the next look may succeed
            log.exception("deciding what to tell")

    def _advance(self, findings: tuple[Finding, ...]) -> None:
        now, before = self._now(), self._book
        alerts = before.alerts
        # What was found a while ago proves neither that it is still there nor that something else is over.
        if time.monotonic() - self._looked_at < FRESH_SECONDS:
            findings += self._post.troubles()
            self.findings = findings
            alerts = advance(alerts, findings, self._timings, self._group_by, now)
        decision = decide(AlertState(alerts, before.told), self._policy_of(), now)
        changed = changed_alerts(before.alerts, alerts)
        if changed or decision != NotifyDecision():
            self._store.record(changed, decision, now)
        self._book = next_state(alerts, before, decision)
        self._post.wake({each.receiver for each in decision.notifications})

    def _prune(self) -> None:
        self._prune_at = time.monotonic() + PRUNE_INTERVAL_SECONDS
        try:
            self._store.prune(self._now())
        except DatabaseError as error:
            log.warning("old alerts could not be removed: %s", error)


def changed_alerts(before: Mapping[str, Alert], after: Mapping[str, Alert]) -> dict[str, Alert | None]:
    """Return the alerts that are not what they were, and as None those that are gone.

    That something was seen again, and other figures in its evidence, are no change: they come with every look, and are
    found again after a restart.
    """
    changed: dict[str, Alert | None] = dict.fromkeys(before.keys() - after.keys())
    for own, alert in after.items():
        known = before.get(own)
        if known is None or (known is not alert and _essence(known) != _essence(alert)):
            changed[own] = alert
    return changed


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
        finding.severity,
        finding.cause,
        finding.explained_by,
        finding.held,
    )


def next_state(alerts: Mapping[str, Alert], before: AlertState, decision: NotifyDecision) -> AlertState:
    told, forgotten = {**before.told, **decision.told}, set(decision.forgotten)
    return AlertState(
        alerts={own: alert for own, alert in alerts.items() if own not in forgotten},
        told={key: each for key, each in told.items() if each is not None},
    )
