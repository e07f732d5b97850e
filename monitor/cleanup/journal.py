"""Journal of cleanup in one SQLite file, written before and after each side effect.

An item is `intended` before it is requested, under a request id that is used once; the outcome can be queried by that
id, also by the next process after kill -9. Notices, announcements and pending notifications are in the same file.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from monitor.alert.model import Notification
from monitor.base.sqlite import Database, DatabaseSession, Row
from monitor.base.state_problems import StateProblem
from monitor.base.state_size import compact
from monitor.cleanup.journal_records import CleanupRun, JournalEntry, RunState
from monitor.cleanup.keep_store import ANSWERS_COLUMN, KEEPS_TABLES, KeepStore
from monitor.cleanup.model import CleanupPlan, Item
from monitor.cleanup.totals import CleanupCounters

log = logging.getLogger(__name__)
FILE = "cleanup.db"
MIGRATIONS = (
    """
CREATE TABLE runs (
    place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, policy TEXT NOT NULL, node TEXT NOT NULL,
    state TEXT NOT NULL, started_at REAL NOT NULL, body BLOB NOT NULL, plan BLOB
);
CREATE INDEX runs_state ON runs (state);
CREATE TABLE items (
    run TEXT NOT NULL, place INTEGER NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, request TEXT,
    ended_at REAL, trash TEXT, body BLOB NOT NULL, PRIMARY KEY (run, place)
);
CREATE INDEX items_ended ON items (ended_at);
CREATE INDEX items_trash ON items (trash) WHERE trash IS NOT NULL;
CREATE TABLE notices (
    policy TEXT NOT NULL, id TEXT NOT NULL, told_at REAL NOT NULL, owner TEXT, PRIMARY KEY (policy, id)
);
CREATE TABLE tried (id TEXT PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE announced (policy TEXT NOT NULL, fingerprint TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (policy, fingerprint));
CREATE TABLE messages (place INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
CREATE TABLE notes (name TEXT PRIMARY KEY, body TEXT NOT NULL);
""",
    KEEPS_TABLES,
    ANSWERS_COLUMN,
)
MAX_RUNS = 2000
MAX_PLAN_BYTES = 1 << 20
OLDER_RUNS = """
DELETE FROM runs WHERE state != 'running'
AND place <= (SELECT (MIN(place) + MAX(place)) / 2 FROM runs WHERE state != 'running')
"""
KEEP_NOTICES_SECONDS = 90 * 86400.0

T = TypeVar("T")


class CleanupJournal:
    """The journal file. Thread-safe."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._database = Database(path, MIGRATIONS)
        self.counters = CleanupCounters()
        self.keeps = KeepStore(self._database)
        with self._database.transaction() as session:
            session.run("INSERT OR IGNORE INTO notes VALUES ('journal', ?)", (secrets.token_hex(8),))

    @property
    def trouble(self) -> str | None:
        """Why the file cannot be written, in one sentence; None if it can."""
        return self._database.trouble

    @property
    def problem(self) -> StateProblem | None:
        """Why the file is not written at the moment; None if it is."""
        return self._database.problem

    def close(self) -> None:
        self._database.close()

    def shrink(self) -> bool:
        """Delete the older half of the ended runs. Return whether there were any. Entries of the trash are kept."""
        with self._database.transaction() as session:
            deleted = session.run(f"{OLDER_RUNS} RETURNING 1")
            session.run("DELETE FROM items WHERE run NOT IN (SELECT id FROM runs) AND trash IS NULL")
        if deleted:
            compact(self._database, self._path)
        return bool(deleted)

    # Runs

    def begin(self, run: CleanupRun, plan: CleanupPlan, items: Iterable[Item] = ()) -> tuple[JournalEntry, ...]:
        """Record a run, its plan, and the items that it may execute; return their entries."""
        entries = tuple(JournalEntry(item=item, place=place) for place, item in enumerate(items))
        with self._database.transaction() as session:
            _put_run(session, run)
            session.run("UPDATE runs SET plan = ? WHERE id = ?", (_stored_plan(plan), run.id))
            for entry in entries:
                _put_entry(session, run.id, entry)
            session.run(
                "DELETE FROM runs WHERE place <= (SELECT place FROM runs ORDER BY place DESC LIMIT 1 OFFSET ?)",
                (MAX_RUNS,),
            )
            session.run("DELETE FROM items WHERE run NOT IN (SELECT id FROM runs) AND trash IS NULL")
        if run.state is RunState.PLANNED:
            self.counters.run_ended(run.policy, run.end, run.freed_bytes)
        return entries

    def write(self, run: CleanupRun, entry: JournalEntry) -> None:
        """Record the state of an item and of its run."""
        with self._database.transaction() as session:
            _put_run(session, run)
            _put_entry(session, run.id, entry)
        if entry.ended_at is not None:
            self.counters.item_ended(run.policy, entry.state)

    def end(self, run: CleanupRun, messages: Iterable[Notification] = ()) -> None:
        """Record the end of a run, with the notifications about it."""
        with self._database.transaction() as session:
            _put_run(session, run)
            _put_messages(session, messages)
        self.counters.run_ended(run.policy, run.end, run.freed_bytes)

    def last_runs(self) -> dict[str, float]:
        """Start of the last run of each policy."""
        return dict(self._database.select("SELECT policy, max(started_at) FROM runs GROUP BY policy"))

    def open_runs(self) -> tuple[CleanupRun, ...]:
        """Runs that never ended, oldest first."""
        rows = self._database.select("SELECT body FROM runs WHERE state = 'running' ORDER BY place")
        return _decoded(rows, CleanupRun)

    def runs(self, limit: int, policy: str | None = None, node: str | None = None) -> tuple[CleanupRun, ...]:
        """The latest runs, newest first, optionally of one policy and node."""
        query = "SELECT body FROM runs WHERE policy = ifnull(?, policy) AND node = ifnull(?, node)"
        rows = self._database.select(f"{query} ORDER BY place DESC LIMIT ?", (policy, node, limit))
        return _decoded(rows, CleanupRun)

    def plan(self, run: str) -> CleanupPlan | None:
        rows = self._database.select("SELECT plan FROM runs WHERE id = ? AND plan IS NOT NULL", (run,))
        return next(iter(_decoded(rows, CleanupPlan)), None)

    def entries(self, run: str) -> tuple[JournalEntry, ...]:
        return _decoded(
            self._database.select("SELECT body FROM items WHERE run = ? ORDER BY place", (run,)), JournalEntry
        )

    def ended_since(self, at: float) -> tuple[JournalEntry, ...]:
        """Items that ended since a time, and those still in progress."""
        query = "SELECT body FROM items WHERE ended_at >= ? OR state = 'intended'"
        return _decoded(self._database.select(query, (at,)), JournalEntry)

    def kept_since(self) -> float | None:
        """Start of the oldest run in the journal; None if no run was ever pruned."""
        rows = self._database.select("SELECT place, started_at FROM runs ORDER BY place LIMIT 1")
        return float(rows[0][1]) if rows and rows[0][0] > 1 else None

    def refused_since(self, at: float) -> tuple[JournalEntry, ...]:
        """Items that were refused since a time."""
        rows = self._database.select("SELECT body FROM items WHERE ended_at >= ? AND state = 'refused'", (at,))
        return _decoded(rows, JournalEntry)

    def trashed(self, trash: str) -> JournalEntry | None:
        """The item that moved a unit into the trash, by trash id."""
        rows = self._database.select("SELECT body FROM items WHERE trash = ? ORDER BY ended_at DESC", (trash,))
        return next(iter(_decoded(rows, JournalEntry)), None)

    # Notices and announcements

    def record_notices(
        self, policy: str, owners: Mapping[str, str | None], messages: Iterable[Notification], now: float
    ) -> None:
        """Record the notification of owners (by item id), with the notifications."""
        with self._database.transaction() as session:
            for item_id, owner in owners.items():
                session.run("INSERT OR REPLACE INTO notices VALUES (?, ?, ?, ?)", (policy, item_id, now, owner))
            session.run("DELETE FROM notices WHERE told_at < ?", (now - KEEP_NOTICES_SECONDS,))
            _put_messages(session, messages)

    def notices(self, policy: str) -> dict[str, float]:
        """When the owner of each item was last notified."""
        return dict(self._database.select("SELECT id, told_at FROM notices WHERE policy = ?", (policy,)))

    def announce(self, policy: str, fingerprint: str, messages: Iterable[Notification], now: float) -> None:
        """Record the first announcement of a policy, with its notifications."""
        with self._database.transaction() as session:
            key = (policy, fingerprint)
            if not session.run("SELECT 1 FROM announced WHERE policy = ? AND fingerprint = ?", key):
                session.run("INSERT INTO announced VALUES (?, ?, ?)", (*key, now))
                _put_messages(session, messages)

    def announced_at(self, policy: str, fingerprint: str) -> float | None:
        query = "SELECT at FROM announced WHERE policy = ? AND fingerprint = ?"
        rows = self._database.select(query, (policy, fingerprint))
        return float(rows[0][0]) if rows else None

    def record_eviction(self, item_id: str, now: float) -> None:
        """Record an attempt to evict an item; the first attempt counts."""
        with self._database.transaction() as session:
            session.run("INSERT OR IGNORE INTO tried VALUES (?, ?)", (item_id, now))
            session.run("DELETE FROM tried WHERE at < ?", (now - KEEP_NOTICES_SECONDS,))

    def first_evictions(self) -> dict[str, float]:
        """When the eviction of each item was first attempted."""
        return dict(self._database.select("SELECT id, at FROM tried"))

    # Notifications for the alert outbox

    def messages(self, after: int) -> tuple[tuple[int, Notification], ...]:
        """Notifications after a sequence number, each with its own number."""
        rows = self._database.select("SELECT place, body FROM messages WHERE place > ? ORDER BY place", (after,))
        return tuple((number, message) for number, body in rows for message in _decoded([(body,)], Notification))

    def forget_messages(self, until: int) -> None:
        """Drop notifications up to a sequence number: they are in the outbox."""
        with self._database.transaction() as session:
            session.run("DELETE FROM messages WHERE place <= ?", (until,))

    # Metadata

    def metadata(self, name: str) -> str | None:
        """A stored value. `journal` is the id of this file."""
        rows = self._database.select("SELECT body FROM notes WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def put_metadata(self, name: str, body: str) -> None:
        with self._database.transaction() as session:
            session.run("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, body))

    def send_if_changed(self, name: str, body: str, messages: Iterable[Notification]) -> None:
        """Store a value and its notifications, unless the value is already stored."""
        with self._database.transaction() as session:
            if session.run("SELECT 1 FROM notes WHERE name = ? AND body = ?", (name, body)):
                return
            session.run("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, body))
            _put_messages(session, messages)


def new_id(prefix: str) -> str:
    """A new unique id."""
    return f"{prefix}-{secrets.token_hex(8)}"


def _put_run(session: DatabaseSession, run: CleanupRun) -> None:
    session.run(
        """
        INSERT INTO runs (id, policy, node, state, started_at, body) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body
        """,
        (run.id, run.policy, run.node or "", run.state, run.started_at, msgspec.json.encode(run)),
    )


def _stored_plan(plan: CleanupPlan) -> bytes:
    """The plan as it is stored: one that is too large without its lists, as the items of a run have their own rows."""
    body = msgspec.json.encode(plan)
    return body if len(body) <= MAX_PLAN_BYTES else msgspec.json.encode(replace(plan, items=(), kept=()))


def _put_entry(session: DatabaseSession, run: str, entry: JournalEntry) -> None:
    values = (run, entry.place, entry.item.id, entry.state, entry.request, entry.ended_at, entry.trash)
    session.run("INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*values, msgspec.json.encode(entry)))


def _put_messages(session: DatabaseSession, messages: Iterable[Notification]) -> None:
    for message in messages:
        session.run("INSERT INTO messages (body) VALUES (?)", (msgspec.json.encode(message),))


def _decoded(rows: Iterable[Row], form: type[T]) -> tuple[T, ...]:
    """Decoded bodies, without those that cannot be decoded: their row was damaged."""
    values = []
    for (body,) in rows:
        try:
            values.append(msgspec.json.decode(body, type=form))
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            log.error("skipping a journaled %s that cannot be decoded: %s", form.__name__, error)
    return tuple(values)
