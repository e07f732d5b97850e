"""Schema of the alerts database, and what an upgrade changes in the rows of an older version."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from monitor.alert.delivery.outbox import TABLES as OUTBOX_TABLES
from monitor.alert.merging import merged_alerts, merged_log
from monitor.alert.model import Alert, NotificationLogEntry
from monitor.base.sqlite_files import Migration, Run

T = TypeVar("T")

# Table `told` is the notification log; `place` is a sequence number, `parcel` a batch.
TABLES = (
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
"""
)


def merge_by_subject(run: Run) -> None:
    """Merge alerts of the same rule and subject, which were several if their other labels differed.

    An alert keeps its fingerprint, which messages and links contain; `merged` has those of the alerts that are gone.
    """
    run("CREATE TABLE merged (fingerprint TEXT PRIMARY KEY, into_fingerprint TEXT NOT NULL)")
    entries = _decoded(run("SELECT body FROM told"), NotificationLogEntry)
    alerts = _decoded(run("SELECT body FROM alerts"), Alert)
    after, merged = merged_alerts(alerts, entries)
    for old, kept in merged.items():
        run("INSERT INTO merged VALUES (?, ?)", (old, kept))
        run("DELETE FROM alerts WHERE fingerprint = ?", (old,))
    for alert in after:
        values = (alert.phase, msgspec.json.encode(alert), alert.fingerprint)
        run("UPDATE alerts SET phase = ?, body = ? WHERE fingerprint = ?", values)
    groups = {alert.fingerprint: alert.group for alert in after}
    for entry, changed in zip(entries, merged_log(entries, merged, groups), strict=True):
        if changed is None:
            run("DELETE FROM told WHERE receiver = ? AND topic = ?", (entry.receiver, entry.group))
        else:
            body = msgspec.json.encode(changed)
            run("UPDATE told SET body = ? WHERE receiver = ? AND topic = ?", (body, entry.receiver, entry.group))


MIGRATIONS: tuple[Migration, ...] = (TABLES, merge_by_subject)


def _decoded(rows: Iterable[tuple[Any, ...]], kind: type[T]) -> list[T]:
    """Decoded bodies, without those that cannot be decoded: they stay as they are, and loading skips them."""
    values = []
    for (body,) in rows:
        try:
            values.append(msgspec.json.decode(body, type=kind))
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
    return values
