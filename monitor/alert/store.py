"""Everything about alerts that has to survive a restart, in one SQLite file.

What became of the alerts, what is told about it and what has to be sent for that are written in one transaction:
whenever the process ends, either all of it happened or nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from monitor.alert.delivery.outbox import TABLES as OUTBOX_TABLES
from monitor.alert.delivery.outbox import Outbox
from monitor.alert.model import Alert, Notification, NotificationLogEntry, NotificationReason, Phase
from monitor.alert.notify import AlertState, NotifyDecision
from monitor.alert.silences import Silence
from monitor.base.sqlite import Database, Row, Session
from monitor.facts.base import Fact
from monitor.facts.findings import Severity

log = logging.getLogger(__name__)

FILE = "alerts.db"
MIGRATIONS = (
    OUTBOX_TABLES
    + """
CREATE TABLE alerts (fingerprint TEXT PRIMARY KEY, phase TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE told (receiver TEXT NOT NULL, topic TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (receiver, topic));
CREATE TABLE silences (id TEXT PRIMARY KEY, ends_at REAL NOT NULL, body BLOB NOT NULL);
CREATE TABLE history (
    place INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, what TEXT NOT NULL, body BLOB NOT NULL
);
CREATE INDEX history_at ON history (at);
CREATE TABLE notes (name TEXT PRIMARY KEY, body BLOB NOT NULL);
""",
)
KEEP_DAYS = 30
KEEP_ROWS = 10_000
DAY_SECONDS = 86400.0

T = TypeVar("T")


class AlertEventKind(StrEnum):
    """What happened to an alert."""

    FIRED = "fired"
    RESOLVED = "resolved"


class AlertEvent(Fact, frozen=True, kw_only=True):
    """Something that happened to an alert, and how the alert was then."""

    at: float
    what: AlertEventKind
    alert: Alert


class Delivery(Fact, frozen=True, kw_only=True):
    """What became of a notification. `state` is waiting, open (tried, not arrived), sent or parked.

    `word` is the receiver's own answer, or why it failed. `late` is how many seconds after the decision it arrived, or
    for how long it waits by now. Notifications with the same `parcel` went out in one message.
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
    """The file with the alerts. For use from any thread."""

    def __init__(self, path: str) -> None:
        self._database = Database(path, MIGRATIONS)
        self.outbox = Outbox(self._database)

    @property
    def trouble(self) -> str | None:
        """Return why nothing is written to the file at the moment; None if all is well."""
        return self._database.trouble

    def close(self) -> None:
        self._database.close()

    def load(self) -> AlertState:
        """Return the alerts and what was told. What cannot be understood any more is left out."""
        alerts = _understood(self._database.select("SELECT body FROM alerts"), Alert)
        told = _understood(self._database.select("SELECT body FROM told"), NotificationLogEntry)
        return AlertState(
            alerts={alert.fingerprint: alert for alert in alerts},
            told={(each.receiver, each.group): each for each in told},
        )

    def record(self, changed: Mapping[str, Alert | None], decision: NotifyDecision, now: float) -> None:
        """Note what became of alerts (None: gone), what is told because of it, and what has to be sent, all at once."""
        with self._database.transaction() as session:
            for fingerprint, alert in changed.items():
                _put_alert(session, fingerprint, alert, now)
            for fingerprint in decision.forgotten:
                session.run("DELETE FROM alerts WHERE fingerprint = ?", (fingerprint,))
            for (receiver, group), told in decision.told.items():
                _put_told(session, receiver, group, told)
            for notification in decision.notifications:
                self.outbox.add(session, notification)

    def send(self, notifications: Iterable[Notification], notes: Mapping[str, bytes]) -> None:
        """Note what else has to be sent, and what is to be remembered about that, all at once."""
        with self._database.transaction() as session:
            for notification in notifications:
                self.outbox.add(session, notification)
            for name, body in notes.items():
                session.run("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, body))

    def note(self, name: str) -> bytes | None:
        """Return what was last remembered under a name."""
        rows = self._database.select("SELECT body FROM notes WHERE name = ?", (name,))
        body: bytes | None = rows[0][0] if rows else None
        return body

    def add_silence(self, silence: Silence) -> None:
        """Add a silence, or replace the one with its id."""
        values = (silence.id, silence.ends_at, msgspec.json.encode(silence))
        with self._database.transaction() as session:
            session.run("INSERT OR REPLACE INTO silences VALUES (?, ?, ?)", values)

    def end_silence(self, own: str, now: float) -> bool:
        """End a silence now. Return whether there was one that had not ended yet."""
        with self._database.transaction() as session:
            rows = session.run("SELECT body FROM silences WHERE id = ? AND ends_at > ?", (own, now))
            for silence in _understood(rows, Silence):
                ended = msgspec.json.encode(replace(silence, ends_at=now))
                session.run("UPDATE silences SET ends_at = ?, body = ? WHERE id = ?", (now, ended, own))
        return bool(rows)

    def silences(self, now: float) -> tuple[Silence, ...]:
        """Return the silences that have not ended yet, the one that ends first at the front."""
        rows = self._database.select("SELECT body FROM silences WHERE ends_at > ? ORDER BY ends_at, id", (now,))
        return tuple(_understood(rows, Silence))

    def history(self, since: float, limit: int = KEEP_ROWS) -> tuple[AlertEvent, ...]:
        """Return what happened to alerts since a time, the latest first."""
        query = "SELECT at, what, body FROM history WHERE at >= ? ORDER BY place DESC LIMIT ?"
        events = []
        for at, what, body in self._database.select(query, (since, limit)):
            events += [
                AlertEvent(at=at, what=AlertEventKind(what), alert=alert) for alert in _understood([(body,)], Alert)
            ]
        return tuple(events)

    def deliveries(self, limit: int, now: float) -> tuple[Delivery, ...]:
        """Return what became of the notifications, the latest first."""
        query = """
            SELECT body, id, state, attempts, done_at, word FROM outbox LEFT JOIN parcels ON parcels.id = outbox.parcel
            ORDER BY place DESC LIMIT ?
        """
        deliveries = []
        for body, *more in self._database.select(query, (limit,)):
            deliveries += [_delivery(each, more, now) for each in _understood([(body,)], Notification)]
        return tuple(deliveries)

    def prune(self, now: float) -> None:
        """Forget what is too old, and of what is left all but the latest. What waits to be sent is never forgotten."""
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
            # Two statements: one for both would go through all parcels for each row, and everybody waits meanwhile.
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


def _put_alert(session: Session, fingerprint: str, alert: Alert | None, now: float) -> None:
    """Write an alert, and into the history what happened to it."""
    if alert is None:
        session.run("DELETE FROM alerts WHERE fingerprint = ?", (fingerprint,))
        return
    body = msgspec.json.encode(alert)
    before = session.run("SELECT phase FROM alerts WHERE fingerprint = ?", (fingerprint,))
    session.run("INSERT OR REPLACE INTO alerts VALUES (?, ?, ?)", (fingerprint, alert.phase, body))
    what = _happened(Phase(before[0][0]) if before else None, alert.phase)
    if what is not None:
        session.run("INSERT INTO history (at, what, body) VALUES (?, ?, ?)", (now, what, body))


def _happened(before: Phase | None, after: Phase) -> AlertEventKind | None:
    if before is after:
        return None
    if after is Phase.RESOLVED and before is Phase.FIRING:
        return AlertEventKind.RESOLVED
    return AlertEventKind.FIRED if after is Phase.FIRING else None


def _put_told(session: Session, receiver: str, group: str, told: NotificationLogEntry | None) -> None:
    if told is None:
        session.run("DELETE FROM told WHERE receiver = ? AND topic = ?", (receiver, group))
    else:
        session.run("INSERT OR REPLACE INTO told VALUES (?, ?, ?)", (receiver, group, msgspec.json.encode(told)))


def _delivery(notification: Notification, row: list[Any], now: float) -> Delivery:
    parcel, state, attempts, done_at, word = row
    return Delivery(
        id=notification.id,
        receiver=notification.receiver,
        group=notification.group,
        reason=notification.reason,
        severity=notification.severity,
        at=notification.at,
        subjects=len(notification.subjects),
        state=state or "waiting",
        late=max(0.0, (now if done_at is None else done_at) - notification.at),
        parcel=parcel,
        attempts=attempts or 0,
        word=word,
    )


def _understood(rows: Iterable[Row], kind: type[T]) -> list[T]:
    """Return the bodies as what they are. What another version wrote and this one cannot understand is left out."""
    found = []
    for (body,) in rows:
        try:
            found.append(msgspec.json.decode(body, type=kind))
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            log.error("what was kept as %s cannot be understood: %s", kind.__name__, error)
    return found
