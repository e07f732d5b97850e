"""What waits to be sent, in the database: written before it is sent, kept until it has arrived or was refused for good.

A notification that waits is merged with a later one about the same group. A parcel that was claimed keeps its id and
its content however often it is tried, also by the next process after kill -9.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Sequence
from enum import StrEnum

import msgspec

from monitor.alert.delivery.backoff import ReceiverHealth, after_failure, after_parking, after_success
from monitor.alert.delivery.batching import QueuedNotification, may_merge, merge
from monitor.alert.delivery.schedule import OpenBatch, ReceiverQueue
from monitor.alert.model import Notification
from monitor.base.sqlite import Database, Row, Session

log = logging.getLogger(__name__)

TABLES = """
CREATE TABLE outbox (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    receiver TEXT NOT NULL, topic TEXT NOT NULL, body BLOB NOT NULL,
    parcel TEXT, position INTEGER  -- NULL while it waits
);
CREATE INDEX outbox_waiting ON outbox (receiver, topic) WHERE parcel IS NULL;
CREATE INDEX outbox_parcel ON outbox (parcel) WHERE parcel IS NOT NULL;
CREATE TABLE parcels (
    id TEXT PRIMARY KEY, receiver TEXT NOT NULL, state TEXT NOT NULL,
    attempts INTEGER NOT NULL, failures INTEGER NOT NULL,
    tried_at REAL NOT NULL, next_at REAL NOT NULL, done_at REAL, word TEXT
);
CREATE INDEX parcels_open ON parcels (receiver) WHERE state = 'open';
CREATE TABLE attempts (receiver TEXT NOT NULL, parcel TEXT NOT NULL, at REAL NOT NULL, under_way INTEGER NOT NULL);
CREATE INDEX attempts_at ON attempts (receiver, at);
CREATE TABLE health (receiver TEXT PRIMARY KEY, body BLOB NOT NULL);
"""
UNSENT = """
FROM outbox LEFT JOIN parcels ON parcels.id = outbox.parcel
WHERE (outbox.parcel IS NULL OR parcels.state = 'open')
"""
OUTAGE_FAILURE_COUNT = (
    3  # so many failures in a row were no accident: what failed meanwhile is tried at once when it is over
)
KEEP_ATTEMPTS_SECONDS = 3600.0  # no receiver limits longer windows

_decode = msgspec.json.Decoder(Notification).decode


class BatchState(StrEnum):
    """Where a parcel is. Parked is what a receiver refused for good: it is kept, and not tried again."""

    OPEN = "open"
    SENT = "sent"
    PARKED = "parked"


class Outbox:
    """The rows of the outbox. Every method is one transaction, but for `add`, which is part of a larger one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session: Session, notification: Notification) -> None:
        """Put a notification into the outbox. What still waits to be told about its group becomes one with it."""
        values = (notification.receiver, notification.group)
        query = "SELECT place, body FROM outbox WHERE receiver = ? AND topic = ? AND parcel IS NULL ORDER BY place DESC"
        for place, body in session.run(query, values):
            earlier = _decode(body)
            if may_merge(earlier, notification):
                merged = msgspec.json.encode(merge(earlier, notification))
                session.run("UPDATE outbox SET body = ? WHERE place = ?", (merged, place))
                return
        session.run(
            "INSERT INTO outbox (receiver, topic, body) VALUES (?, ?, ?)", (*values, msgspec.json.encode(notification))
        )

    def queue(self, receiver: str, window: float, now: float) -> ReceiverQueue:
        """Return what there is for a receiver, and when it was tried in the last `window` seconds."""
        with self._database.transaction() as session:
            # A clock that was set back: what was sent "later" counts from now on, and not until that time comes again.
            session.run("UPDATE attempts SET at = ? WHERE receiver = ? AND at > ?", (now, receiver, now))
            query = "SELECT at FROM attempts WHERE receiver = ? AND at > ? ORDER BY at"
            attempts = tuple(at for (at,) in session.run(query, (receiver, now - window)))
            parcels = _open_parcels(session, receiver)
            waiting = _waiting(session, receiver)
            health = _health(session, receiver)
        busy = {notification.group for each in parcels for notification in each.notifications}
        free = tuple(each for each in waiting if each.notification.group not in busy)
        return ReceiverQueue(waiting=free, open=parcels, attempts=attempts, health=health)

    def claim(self, receiver: str, places: Sequence[int], now: float) -> OpenBatch:
        """Make a parcel of what waits at these places, in this order, and note that it is tried now."""
        with self._database.transaction() as session:
            parcel = _claim(session, receiver, places, now)
            self._try(session, receiver, parcel, now)
            return next(each for each in _open_parcels(session, receiver) if each.id == parcel)

    def retry(self, parcel: OpenBatch, now: float) -> None:
        """Note that a parcel is tried again now."""
        with self._database.transaction() as session:
            self._try(session, parcel.receiver, parcel.id, now)

    def sent(self, parcel: OpenBatch, answer: str, now: float) -> None:
        """Note that a parcel has arrived."""
        with self._database.transaction() as session:
            before = _health(session, parcel.receiver)
            _close(session, parcel.id, BatchState.SENT, answer, now)
            _put_health(session, after_success(before, now))
            if before.failures >= OUTAGE_FAILURE_COUNT:
                session.run(
                    "UPDATE parcels SET next_at = ? WHERE receiver = ? AND state = 'open'", (now, parcel.receiver)
                )

    def failed(self, parcel: OpenBatch, error: str, wait: float, rest: float, now: float) -> None:
        """Note that a parcel was not taken: it waits for `wait` seconds, and the receiver is left alone for `rest`."""
        with self._database.transaction() as session:
            health = after_failure(_health(session, parcel.receiver), error, rest, now)
            session.run(
                "UPDATE parcels SET failures = attempts, tried_at = ?, next_at = ?, word = ? WHERE id = ?",
                (now, now + wait, error, parcel.id),
            )
            _end_attempt(session, parcel.id, now)
            _put_health(session, health)

    def parked(self, parcel: OpenBatch, error: str, now: float) -> None:
        """Note that a parcel was refused for good."""
        with self._database.transaction() as session:
            health = after_parking(_health(session, parcel.receiver), error, now)
            _close(session, parcel.id, BatchState.PARKED, error, now)
            _put_health(session, health)

    def begin(self, receivers: Collection[str], now: float) -> None:
        """Note that a process begins to send to these receivers.

        What was under way when the last one ended may have arrived until this moment. What waits for a receiver that
        is not there any more is parked, and so is what another version wrote that this one cannot understand.
        """
        with self._database.transaction() as session:
            session.run("UPDATE attempts SET at = ?, under_way = 0 WHERE under_way = 1", (now,))
            session.run("DELETE FROM attempts WHERE at < ?", (now - KEEP_ATTEMPTS_SECONDS,))
            for place, receiver, body, parcel in session.run(f"SELECT place, outbox.receiver, body, parcel {UNSENT}"):
                why = None if _understood(body) else "it was written by another version and cannot be understood"
                if receiver not in receivers:
                    why = "this receiver is not configured any more"
                if why is not None:
                    log.error("a message for receiver %s is parked: %s", receiver, why)
                    own = parcel or _claim(session, receiver, [place], now)
                    _close(session, own, BatchState.PARKED, why, now)
            for (receiver,) in session.run("SELECT receiver FROM health"):
                if receiver not in receivers:
                    session.run("DELETE FROM health WHERE receiver = ?", (receiver,))

    def health(self) -> tuple[ReceiverHealth, ...]:
        """Return how it stands with every receiver that was ever tried."""
        rows = self._database.select("SELECT body FROM health ORDER BY receiver")
        return tuple(msgspec.json.decode(body, type=ReceiverHealth) for (body,) in rows)

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how many notifications are waiting, or parked, by receiver and which of the two."""
        query = """
            SELECT outbox.receiver, CASE parcels.state WHEN 'parked' THEN 'parked' ELSE 'waiting' END, count(*)
            FROM outbox LEFT JOIN parcels ON parcels.id = outbox.parcel
            WHERE outbox.parcel IS NULL OR parcels.state != 'sent' GROUP BY 1, 2
        """
        return {(receiver, state): count for receiver, state, count in self._database.select(query)}

    def unsent(self, receiver: str) -> int:
        """Return how many notifications have not arrived yet, and are not parked."""
        query = f"SELECT count(*) {UNSENT} AND outbox.receiver = ?"
        count: int = self._database.select(query, (receiver,))[0][0]
        return count

    def _try(self, session: Session, receiver: str, parcel: str, now: float) -> None:
        """Written before the request: it counts against the limit of the receiver even if this process ends now."""
        session.run("UPDATE parcels SET attempts = attempts + 1, tried_at = ? WHERE id = ?", (now, parcel))
        session.run("INSERT INTO attempts VALUES (?, ?, ?, 1)", (receiver, parcel, now))
        session.run("DELETE FROM attempts WHERE receiver = ? AND at < ?", (receiver, now - KEEP_ATTEMPTS_SECONDS))


def _waiting(session: Session, receiver: str) -> list[QueuedNotification]:
    query = "SELECT place, body FROM outbox WHERE receiver = ? AND parcel IS NULL ORDER BY place"
    return [QueuedNotification(place, _decode(body)) for place, body in session.run(query, (receiver,))]


def _claim(session: Session, receiver: str, places: Sequence[int], now: float) -> str:
    """Make a parcel, and return its id: the same for the same content, and another for every other."""
    content = hashlib.sha256(repr(receiver).encode())
    for place in places:
        ((body,),) = session.run("SELECT body FROM outbox WHERE place = ? AND parcel IS NULL", (place,))
        content.update(place.to_bytes(8) + body)
    parcel = content.hexdigest()[:24]
    session.run(
        "INSERT INTO parcels (id, receiver, state, attempts, failures, tried_at, next_at) VALUES (?, ?, ?, 0, 0, ?, ?)",
        (parcel, receiver, BatchState.OPEN, now, now),
    )
    for position, place in enumerate(places):
        session.run("UPDATE outbox SET parcel = ?, position = ? WHERE place = ?", (parcel, position, place))
    return parcel


def _open_parcels(session: Session, receiver: str) -> tuple[OpenBatch, ...]:
    query = """
        SELECT id, attempts, failures, tried_at, next_at FROM parcels WHERE receiver = ? AND state = 'open'
        ORDER BY tried_at
    """
    return tuple(_open_parcel(session, receiver, row) for row in session.run(query, (receiver,)))


def _open_parcel(session: Session, receiver: str, row: Row) -> OpenBatch:
    parcel, attempts, failures, tried_at, next_at = row
    bodies = session.run("SELECT body FROM outbox WHERE parcel = ? ORDER BY position", (parcel,))
    return OpenBatch(
        id=parcel,
        receiver=receiver,
        notifications=tuple(_decode(body) for (body,) in bodies),
        attempts=attempts,
        failures=failures,
        tried_at=tried_at,
        next_at=next_at,
    )


def _close(session: Session, parcel: str, state: BatchState, word: str, now: float) -> None:
    values = (state, now, word, parcel)
    session.run("UPDATE parcels SET state = ?, done_at = ?, word = ? WHERE id = ?", values)
    _end_attempt(session, parcel, now)


def _end_attempt(session: Session, parcel: str, now: float) -> None:
    """Count an attempt from its end: the receiver's own clock saw it some time before that."""
    session.run("UPDATE attempts SET at = max(at, ?), under_way = 0 WHERE parcel = ? AND under_way = 1", (now, parcel))


def _health(session: Session, receiver: str) -> ReceiverHealth:
    rows = session.run("SELECT body FROM health WHERE receiver = ?", (receiver,))
    return msgspec.json.decode(rows[0][0], type=ReceiverHealth) if rows else ReceiverHealth(receiver=receiver)


def _put_health(session: Session, health: ReceiverHealth) -> None:
    body = msgspec.json.encode(health)
    session.run("INSERT OR REPLACE INTO health VALUES (?, ?)", (health.receiver, body))


def _understood(body: bytes) -> bool:
    try:
        _decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True
