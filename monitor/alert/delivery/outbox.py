"""Transactional outbox: notifications are stored before they are sent, and kept until they are delivered or parked.

A waiting notification is merged with a later one about the same group. A claimed batch keeps its id and content through
all retries, including those of the next process after kill -9.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Sequence
from enum import StrEnum

import msgspec

from monitor.alert.bounds import stored_notification
from monitor.alert.delivery.backoff import ReceiverHealth, after_failure, after_parking, after_success
from monitor.alert.delivery.batching import QueuedNotification, may_merge, merge
from monitor.alert.delivery.schedule import OpenBatch, ReceiverQueue
from monitor.alert.model import Notification
from monitor.base.sqlite import Database, DatabaseSession, Row

log = logging.getLogger(__name__)

# Schema names: `parcel` is a batch, `place` a sequence number, `topic` a group, `word` an answer or error.
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
OUTAGE_FAILURE_COUNT = 3  # consecutive failures after which the first success makes all open batches due at once
KEEP_ATTEMPTS_SECONDS = 3600.0  # longer than the window of any rate limit

_decode = msgspec.json.Decoder(Notification).decode


class BatchState(StrEnum):
    """State of a batch. A parked batch was refused permanently: it is kept but not retried."""

    OPEN = "open"
    SENT = "sent"
    PARKED = "parked"


class Outbox:
    """Outbox tables. Every method is one transaction, except `add`, which is part of a larger one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, session: DatabaseSession, notification: Notification) -> None:
        """Queue a notification, merged with a waiting one about the same group if there is one."""
        values = (notification.receiver, notification.group)
        query = "SELECT place, body FROM outbox WHERE receiver = ? AND topic = ? AND parcel IS NULL ORDER BY place DESC"
        for sequence, body in session.run(query, values):
            earlier = _decode(body)
            if may_merge(earlier, notification):
                merged = msgspec.json.encode(stored_notification(merge(earlier, notification)))
                session.run("UPDATE outbox SET body = ? WHERE place = ?", (merged, sequence))
                return
        body = msgspec.json.encode(stored_notification(notification))
        session.run("INSERT INTO outbox (receiver, topic, body) VALUES (?, ?, ?)", (*values, body))

    def queue(self, receiver: str, window: float, now: float) -> ReceiverQueue:
        """Queue of a receiver, with the attempts of the last `window` seconds."""
        with self._database.transaction() as session:
            # After the clock was set back, attempts in the future count from now, not until that time comes again.
            session.run("UPDATE attempts SET at = ? WHERE receiver = ? AND at > ?", (now, receiver, now))
            query = "SELECT at FROM attempts WHERE receiver = ? AND at > ? ORDER BY at"
            attempts = tuple(at for (at,) in session.run(query, (receiver, now - window)))
            batches = _open_batches(session, receiver)
            waiting = _waiting(session, receiver)
            health = _health(session, receiver)
        busy = {notification.group for batch in batches for notification in batch.notifications}
        free = [entry for entry in waiting if entry.notification.group not in busy]
        later = [at for entry in free if (at := entry.notification.not_before) is not None and at > now]
        due = tuple(entry for entry in free if (entry.notification.not_before or now) <= now)
        return ReceiverQueue(due, batches, attempts, health, min(later, default=None))

    def claim(self, receiver: str, sequences: Sequence[int], now: float) -> OpenBatch:
        """Combine waiting notifications, in this order, into a batch that is tried now."""
        with self._database.transaction() as session:
            batch_id = _claim(session, receiver, sequences, now)
            _begin_attempt(session, receiver, batch_id, now)
            return next(batch for batch in _open_batches(session, receiver) if batch.id == batch_id)

    def retry(self, batch: OpenBatch, now: float) -> None:
        """Record that a batch is tried again."""
        with self._database.transaction() as session:
            _begin_attempt(session, batch.receiver, batch.id, now)

    def sent(self, batch: OpenBatch, answer: str, now: float) -> None:
        """Record a delivery."""
        with self._database.transaction() as session:
            before = _health(session, batch.receiver)
            _close(session, batch.id, BatchState.SENT, answer, now)
            _put_health(session, after_success(before, now))
            if before.failures >= OUTAGE_FAILURE_COUNT:
                session.run(
                    "UPDATE parcels SET next_at = ? WHERE receiver = ? AND state = 'open'", (now, batch.receiver)
                )

    def failed(self, batch: OpenBatch, error: str, wait: float, rest: float, now: float) -> None:
        """Record a failed attempt: the batch waits for `wait` seconds, the receiver rests for `rest` seconds."""
        with self._database.transaction() as session:
            health = after_failure(_health(session, batch.receiver), error, rest, now)
            session.run(
                "UPDATE parcels SET failures = attempts, tried_at = ?, next_at = ?, word = ? WHERE id = ?",
                (now, now + wait, error, batch.id),
            )
            _end_attempt(session, batch.id, now)
            _put_health(session, health)

    def parked(self, batch: OpenBatch, error: str, now: float) -> None:
        """Record a permanent refusal."""
        with self._database.transaction() as session:
            health = after_parking(_health(session, batch.receiver), error, now)
            _close(session, batch.id, BatchState.PARKED, error, now)
            _put_health(session, health)

    def begin(self, receivers: Collection[str], now: float) -> None:
        """Prepare for a new process that sends to these receivers.

        Attempts in progress when the previous process ended may have succeeded until now. Notifications for receivers
        that are no longer configured are parked, and so are those that this version cannot decode.
        """
        with self._database.transaction() as session:
            session.run("UPDATE attempts SET at = ?, under_way = 0 WHERE under_way = 1", (now,))
            session.run("DELETE FROM attempts WHERE at < ?", (now - KEEP_ATTEMPTS_SECONDS,))
            for sequence, receiver, body, batch in session.run(f"SELECT place, outbox.receiver, body, parcel {UNSENT}"):
                problem = None if _is_decodable(body) else "it was written by another version and cannot be decoded"
                if receiver not in receivers:
                    problem = "this receiver is no longer configured"
                if problem is not None:
                    log.error("a message for receiver %s is parked: %s", receiver, problem)
                    batch_id = batch or _claim(session, receiver, [sequence], now)
                    _close(session, batch_id, BatchState.PARKED, problem, now)
            for (receiver,) in session.run("SELECT receiver FROM health"):
                if receiver not in receivers:
                    session.run("DELETE FROM health WHERE receiver = ?", (receiver,))

    def health(self) -> tuple[ReceiverHealth, ...]:
        """Health of every receiver that was ever tried."""
        rows = self._database.select("SELECT body FROM health ORDER BY receiver")
        return tuple(health for (body,) in rows if (health := _decode_health(body)) is not None)

    def counts(self) -> dict[tuple[str, str], int]:
        """Number of notifications by receiver and state, waiting or parked."""
        query = """
            SELECT outbox.receiver, CASE parcels.state WHEN 'parked' THEN 'parked' ELSE 'waiting' END, count(*)
            FROM outbox LEFT JOIN parcels ON parcels.id = outbox.parcel
            WHERE outbox.parcel IS NULL OR parcels.state != 'sent' GROUP BY 1, 2
        """
        return {(receiver, state): count for receiver, state, count in self._database.select(query)}

    def unsent(self, receiver: str) -> int:
        """Number of notifications that are neither delivered nor parked."""
        query = f"SELECT count(*) {UNSENT} AND outbox.receiver = ?"
        count: int = self._database.select(query, (receiver,))[0][0]
        return count


def _waiting(session: DatabaseSession, receiver: str) -> list[QueuedNotification]:
    query = "SELECT place, body FROM outbox WHERE receiver = ? AND parcel IS NULL ORDER BY place"
    return [QueuedNotification(sequence, _decode(body)) for sequence, body in session.run(query, (receiver,))]


def _claim(session: DatabaseSession, receiver: str, sequences: Sequence[int], now: float) -> str:
    """Create a batch and return its id, which is derived from the content."""
    content = hashlib.sha256(repr(receiver).encode())
    for sequence in sequences:
        ((body,),) = session.run("SELECT body FROM outbox WHERE place = ? AND parcel IS NULL", (sequence,))
        content.update(sequence.to_bytes(8) + body)
    batch_id = content.hexdigest()[:24]
    session.run(
        "INSERT INTO parcels (id, receiver, state, attempts, failures, tried_at, next_at) VALUES (?, ?, ?, 0, 0, ?, ?)",
        (batch_id, receiver, BatchState.OPEN, now, now),
    )
    for position, sequence in enumerate(sequences):
        session.run("UPDATE outbox SET parcel = ?, position = ? WHERE place = ?", (batch_id, position, sequence))
    return batch_id


def _open_batches(session: DatabaseSession, receiver: str) -> tuple[OpenBatch, ...]:
    query = """
        SELECT id, attempts, failures, tried_at, next_at FROM parcels WHERE receiver = ? AND state = 'open'
        ORDER BY tried_at
    """
    return tuple(_open_batch(session, receiver, row) for row in session.run(query, (receiver,)))


def _open_batch(session: DatabaseSession, receiver: str, row: Row) -> OpenBatch:
    batch_id, attempts, failures, tried_at, next_at = row
    bodies = session.run("SELECT body FROM outbox WHERE parcel = ? ORDER BY position", (batch_id,))
    return OpenBatch(
        id=batch_id,
        receiver=receiver,
        notifications=tuple(_decode(body) for (body,) in bodies),
        attempts=attempts,
        failures=failures,
        tried_at=tried_at,
        next_at=next_at,
    )


def _close(session: DatabaseSession, batch_id: str, state: BatchState, answer: str, now: float) -> None:
    values = (state, now, answer, batch_id)
    session.run("UPDATE parcels SET state = ?, done_at = ?, word = ? WHERE id = ?", values)
    _end_attempt(session, batch_id, now)


def _begin_attempt(session: DatabaseSession, receiver: str, batch_id: str, now: float) -> None:
    """Written before the request, so that it counts against the rate limit even if this process is killed."""
    session.run("UPDATE parcels SET attempts = attempts + 1, tried_at = ? WHERE id = ?", (now, batch_id))
    session.run("INSERT INTO attempts VALUES (?, ?, ?, 1)", (receiver, batch_id, now))
    session.run("DELETE FROM attempts WHERE receiver = ? AND at < ?", (receiver, now - KEEP_ATTEMPTS_SECONDS))


def _end_attempt(session: DatabaseSession, batch_id: str, now: float) -> None:
    """Count an attempt from its end: the receiver counted it some time before that."""
    session.run(
        "UPDATE attempts SET at = max(at, ?), under_way = 0 WHERE parcel = ? AND under_way = 1", (now, batch_id)
    )


def _health(session: DatabaseSession, receiver: str) -> ReceiverHealth:
    rows = session.run("SELECT body FROM health WHERE receiver = ?", (receiver,))
    return (_decode_health(rows[0][0]) if rows else None) or ReceiverHealth(receiver=receiver)


def _decode_health(body: bytes) -> ReceiverHealth | None:
    """Stored health; None if it cannot be decoded, which the next attempt corrects."""
    try:
        return msgspec.json.decode(body, type=ReceiverHealth)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _put_health(session: DatabaseSession, health: ReceiverHealth) -> None:
    body = msgspec.json.encode(health)
    session.run("INSERT OR REPLACE INTO health VALUES (?, ?)", (health.receiver, body))


def _is_decodable(body: bytes) -> bool:
    try:
        _decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return True
