"""Persistent state of alerting in one SQLite file.

Alerts, the notification log and the outbox change in one transaction, so that a crash at any moment leaves them
consistent.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from monitor.alert.bounds import stored_alert
from monitor.alert.delivery.mentions import Mention, Mentions
from monitor.alert.delivery.outbox import Outbox
from monitor.alert.migrations import MIGRATIONS
from monitor.alert.model import (
    SEVERITY_RANK,
    Acknowledgement,
    Alert,
    AlertState,
    Notification,
    NotificationLogEntry,
    NotificationReason,
    Phase,
    alertname,
)
from monitor.alert.notify import NotifyDecision
from monitor.alert.silences import Silence
from monitor.base.sqlite import Database, DatabaseSession, Row
from monitor.base.state_problems import StateProblem
from monitor.base.state_size import compact
from monitor.facts.base import Fact
from monitor.facts.findings import Severity

log = logging.getLogger(__name__)

FILE = "alerts.db"
OLDER_HISTORY = """
DELETE FROM history WHERE place <= (SELECT (MIN(place) + MAX(place)) / 2 FROM history)
"""
OLDER_DELIVERIES = """
DELETE FROM outbox WHERE parcel IN (SELECT id FROM parcels WHERE state != 'open') AND place <= (
    SELECT (MIN(place) + MAX(place)) / 2 FROM outbox WHERE parcel IN (SELECT id FROM parcels WHERE state != 'open')
)
"""
KEEP_DAYS = 30
KEEP_ROWS = 10_000
DAY_SECONDS = 86400.0

T = TypeVar("T")


class AlertEventKind(StrEnum):
    """Transition of an alert that the history records."""

    FIRED = "fired"
    RESOLVED = "resolved"
    ESCALATED = "escalated"
    ACKNOWLEDGED = "acknowledged"


class AlertEvent(Fact, frozen=True, kw_only=True):
    """Transition of an alert, with the alert as it was then."""

    at: float
    what: AlertEventKind
    alert: Alert


class Delivery(Fact, frozen=True, kw_only=True):
    """Delivery of a notification. `state` is waiting, open (tried, not delivered), sent or parked.

    `word` is the receiver's answer or the error. `late` is the delay in seconds from the decision to the delivery, or
    until now. Notifications with the same `parcel` were sent in one message.
    """

    id: str
    receiver: str
    group: str
    reason: NotificationReason
    severity: Severity
    at: float
    subjects: int
    state: str
    late: float
    parcel: str | None = None
    attempts: int = 0
    word: str | None = None


class AlertStore:
    """Alerts database. Thread-safe."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._database = Database(path, MIGRATIONS)
        self.outbox = Outbox(self._database)
        self._mentions = Mentions(self._database)
        self._silences_version = 0  # grows with every change of silences
        self._silences: tuple[int, tuple[Silence, ...]] | None = None  # with their version

    @property
    def problem(self) -> StateProblem | None:
        """Why the file is not written at the moment; None if it is."""
        return self._database.problem

    def close(self) -> None:
        self._database.close()

    def load(self) -> AlertState:
        """Alerts and notification log; rows that cannot be decoded are skipped."""
        alerts = _decoded(self._database.select("SELECT body FROM alerts"), Alert)
        entries = _decoded(self._database.select("SELECT body FROM told"), NotificationLogEntry)
        return AlertState(
            alerts={alert.fingerprint: alert for alert in alerts},
            notification_log={(entry.receiver, entry.group): entry for entry in entries},
        )

    def record(self, changed: Mapping[str, Alert | None], decision: NotifyDecision, now: float) -> None:
        """Write changed alerts (None: delete) and a decision in one transaction."""
        with self._database.transaction() as session:
            for fingerprint, alert in changed.items():
                _put_alert(session, fingerprint, alert, now)
            for fingerprint in decision.forgotten:
                session.run("DELETE FROM alerts WHERE fingerprint = ?", (fingerprint,))
            for (receiver, group), entry in decision.log_changes.items():
                _put_log_entry(session, receiver, group, entry)
            for notification in decision.notifications:
                self.outbox.add(session, notification)

    def send(self, notifications: Iterable[Notification], notes: Mapping[str, bytes | None]) -> None:
        """Queue further notifications and store notes about them (None: delete) in one transaction."""
        with self._database.transaction() as session:
            for notification in notifications:
                self.outbox.add(session, notification)
            for name, body in notes.items():
                if body is None:
                    session.run("DELETE FROM notes WHERE name = ?", (name,))
                else:
                    session.run("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, body))

    def note(self, name: str) -> bytes | None:
        """Note last stored under a name."""
        rows = self._database.select("SELECT body FROM notes WHERE name = ?", (name,))
        body: bytes | None = rows[0][0] if rows else None
        return body

    def notes(self, prefix: str) -> dict[str, bytes]:
        """Notes whose names begin with a prefix."""
        return dict(
            self._database.select("SELECT name, body FROM notes WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))
        )

    def add_silence(self, silence: Silence) -> None:
        """Add a silence, or replace the one with the same id."""
        values = (silence.id, silence.ends_at, msgspec.json.encode(silence))
        with self._database.transaction() as session:
            session.run("INSERT OR REPLACE INTO silences VALUES (?, ?, ?)", values)
        self._silences_version += 1

    def end_silence(self, silence_id: str, now: float) -> bool:
        """End a silence. Return whether it existed and had not ended yet."""
        with self._database.transaction() as session:
            rows = session.run("SELECT body FROM silences WHERE id = ? AND ends_at > ?", (silence_id, now))
            for silence in _decoded(rows, Silence):
                ended = msgspec.json.encode(replace(silence, ends_at=now))
                session.run("UPDATE silences SET ends_at = ?, body = ? WHERE id = ?", (now, ended, silence_id))
        self._silences_version += 1
        return bool(rows)

    def silences(self, now: float) -> tuple[Silence, ...]:
        """Silences that have not ended, by their end. Read only after a change: every open page asks for them."""
        version, known = self._silences_version, self._silences
        if known is None or known[0] != version:
            rows = self._database.select("SELECT body FROM silences WHERE ends_at > ? ORDER BY ends_at, id", (now,))
            known = self._silences = version, tuple(_decoded(rows, Silence))
        return tuple([silence for silence in known[1] if silence.ends_at > now])

    def history(self, since: float, limit: int = KEEP_ROWS, about: str = "") -> tuple[AlertEvent, ...]:
        """Transitions of alerts since a time, the latest first; those that contain a text `about` something."""
        query = "SELECT at, what, body FROM history WHERE at >= ? AND instr(body, ?) ORDER BY place DESC LIMIT ?"
        contained = msgspec.json.encode(about)[1:-1]
        events = []
        for at, what, body in self._database.select(query, (since, contained, limit)):
            kind = AlertEventKind(what)
            events += [AlertEvent(at=at, what=kind, alert=alert) for alert in _decoded([(body,)], Alert)]
        return tuple(events)

    def deliveries(self, limit: int, now: float) -> tuple[Delivery, ...]:
        """Deliveries of notifications, the latest first."""
        query = """
            SELECT body, id, state, attempts, done_at, word FROM outbox LEFT JOIN parcels ON parcels.id = outbox.parcel
            ORDER BY place DESC LIMIT ?
        """
        deliveries = []
        for body, *more in self._database.select(query, (limit,)):
            deliveries += [_delivery(notification, more, now) for notification in _decoded([(body,)], Notification)]
        return tuple(deliveries)

    def merged_into(self, fingerprint: str) -> str:
        """Fingerprint of the alert into which an upgrade merged one; any other one as it is."""
        rows = self._database.select("SELECT into_fingerprint FROM merged WHERE fingerprint = ?", (fingerprint,))
        return str(rows[0][0]) if rows else fingerprint

    def mentions(self, alert: Alert, since: float, limit: int) -> tuple[Mention, ...]:
        """Notifications about an alert since a time, the latest first."""
        group = alert.group or alertname(alert.finding.rule)
        return self._mentions.of(group, alert.fingerprint, since, limit)

    def shrink(self) -> bool:
        """Delete the older half of the history and of the delivered notifications. Return whether there were any."""
        with self._database.transaction() as session:
            deleted = session.run(f"{OLDER_HISTORY} RETURNING 1") + session.run(f"{OLDER_DELIVERIES} RETURNING 1")
            session.run("DELETE FROM parcels WHERE id NOT IN (SELECT parcel FROM outbox WHERE parcel IS NOT NULL)")
        if deleted:
            compact(self._database, self._path)
        return bool(deleted)

    def prune(self, now: float) -> None:
        """Delete old rows, and all but the latest of the rest. Notifications that wait to be sent are never deleted."""
        old = now - KEEP_DAYS * DAY_SECONDS
        with self._database.transaction() as session:
            session.run("DELETE FROM silences WHERE ends_at < ?", (old,))
            session.run(
                """
                DELETE FROM history
                WHERE at < ? OR place <= (SELECT place FROM history ORDER BY place DESC LIMIT 1 OFFSET ?)
                """,
                (old, KEEP_ROWS),
            )
            # Two statements: a combined one would scan all parcels for each row while holding the lock.
            session.run(
                "DELETE FROM outbox WHERE parcel IN (SELECT id FROM parcels WHERE state != 'open' AND done_at < ?)",
                (old,),
            )
            session.run(
                """
                DELETE FROM outbox
                WHERE place <= (SELECT place FROM outbox ORDER BY place DESC LIMIT 1 OFFSET ?)
                AND parcel IN (SELECT id FROM parcels WHERE state != 'open')
                """,
                (KEEP_ROWS,),
            )
            session.run("DELETE FROM parcels WHERE id NOT IN (SELECT parcel FROM outbox WHERE parcel IS NOT NULL)")
        self._silences_version += 1


class _KnownAlert(msgspec.Struct):
    """What the transition of an alert depends on."""

    phase: Phase
    finding: _KnownFinding
    acknowledged: Acknowledgement | None = None


class _KnownFinding(msgspec.Struct):
    severity: Severity


def _put_alert(session: DatabaseSession, fingerprint: str, alert: Alert | None, now: float) -> None:
    """Write an alert, and its transitions to the history."""
    if alert is None:
        session.run("DELETE FROM alerts WHERE fingerprint = ?", (fingerprint,))
        return
    body = msgspec.json.encode(stored_alert(alert))
    before = _decoded(session.run("SELECT body FROM alerts WHERE fingerprint = ?", (fingerprint,)), _KnownAlert)
    session.run("INSERT OR REPLACE INTO alerts VALUES (?, ?, ?)", (fingerprint, alert.phase, body))
    for kind in _transitions(before[0] if before else None, alert):
        session.run("INSERT INTO history (at, what, body) VALUES (?, ?, ?)", (now, kind, body))


def _transitions(before: _KnownAlert | None, after: Alert) -> list[AlertEventKind]:
    fired_before = before is not None and before.phase is Phase.FIRING
    if before is None or not fired_before or after.phase is not Phase.FIRING:
        if after.phase is Phase.FIRING:
            return [AlertEventKind.FIRED]
        return [AlertEventKind.RESOLVED] if fired_before and after.phase is Phase.RESOLVED else []
    changes = {
        AlertEventKind.ESCALATED: SEVERITY_RANK[after.finding.severity] < SEVERITY_RANK[before.finding.severity],
        AlertEventKind.ACKNOWLEDGED: after.acknowledged not in (None, before.acknowledged),
    }
    return [kind for kind, applies in changes.items() if applies]


def _put_log_entry(session: DatabaseSession, receiver: str, group: str, entry: NotificationLogEntry | None) -> None:
    if entry is None:
        session.run("DELETE FROM told WHERE receiver = ? AND topic = ?", (receiver, group))
    else:
        session.run("INSERT OR REPLACE INTO told VALUES (?, ?, ?)", (receiver, group, msgspec.json.encode(entry)))


def _delivery(notification: Notification, row: list[Any], now: float) -> Delivery:
    batch, state, attempts, done_at, word = row
    return Delivery(
        id=notification.id,
        receiver=notification.receiver,
        group=notification.group,
        reason=notification.reason,
        severity=notification.severity,
        at=notification.at,
        subjects=len(notification.subjects) + notification.omitted,
        state=state or "waiting",
        late=max(0.0, (now if done_at is None else done_at) - notification.due_at),
        parcel=batch,
        attempts=attempts or 0,
        word=word,
    )


def _decoded(rows: Iterable[Row], kind: type[T]) -> list[T]:
    """Decoded bodies, without those that this version cannot decode."""
    values = []
    for (body,) in rows:
        try:
            values.append(msgspec.json.decode(body, type=kind))
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            log.error("skipping a stored %s that cannot be decoded: %s", kind.__name__, error)
    return values
