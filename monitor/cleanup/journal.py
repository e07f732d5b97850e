"""What cleanup did and is about to do, in one SQLite file: written before and after each act, whatever happens between.

An item is `intended` before anybody is asked to do it, under an id that is used once; what became of it can be asked by
that id, also by the next process after kill -9. Notices to owners, announcements and messages are in the same file.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec

from monitor.alert.model import Notification
from monitor.base.sqlite import Database, Row, Session
from monitor.cleanup.model import CleanupPlan, Item
from monitor.cleanup.totals import CleanupCounters
from monitor.facts.base import Fact

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
)
MAX_RUNS = 2000
KEEP_NOTICES_SECONDS = 90 * 86400.0

T = TypeVar("T")


class RunState(StrEnum):
    """How far a run is."""

    PLANNED = "planned"  # nothing was done, and nothing will be: it says what would be
    RUNNING = "running"
    ENDED = "ended"


class ItemState(StrEnum):
    """How far an item is."""

    PLANNED = "planned"
    INTENDED = "intended"  # somebody was asked, or is about to be
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    LATER = "later"  # it was not done, and is tried again by another run


class CleanupRun(Fact, frozen=True, kw_only=True):
    """One run of a policy on a node, or in the whole cluster.

    `trigger` is cron, made-up, high-water, resumed, asked or release; `by` who asked for it. `end` is a word: done,
    low-water, minutes, bytes, errors, stopped, interrupted; dry-run, announced, waiting, refused where nothing was
    done. `before` and `after` are how full the disk was, as a share, where there is one.
    """

    id: str
    policy: str
    kind: str
    mode: str
    trigger: str
    started_at: float
    state: RunState
    node: str | None = None
    by: str | None = None
    ended_at: float | None = None
    end: str | None = None
    freed_bytes: int = 0
    before: float | None = None
    after: float | None = None


class JournalEntry(Fact, frozen=True, kw_only=True):
    """One item of a run, and what became of it. `request` is the id under which somebody was asked to do it."""

    item: Item
    place: int
    state: ItemState = ItemState.PLANNED
    request: str | None = None
    intended_at: float | None = None
    ended_at: float | None = None
    outcome: str | None = None
    message: str | None = None
    freed_bytes: int | None = None
    trash: str | None = None


class CleanupJournal:
    """The file. For use from any thread."""

    def __init__(self, path: str) -> None:
        self._database = Database(path, MIGRATIONS)
        self.figures = CleanupCounters()
        with self._database.transaction() as session:
            session.run("INSERT OR IGNORE INTO notes VALUES ('journal', ?)", (secrets.token_hex(8),))

    @property
    def trouble(self) -> str | None:
        """Return why nothing is written to the file at the moment; None if all is well."""
        return self._database.trouble

    def close(self) -> None:
        self._database.close()

    # Runs

    def begin(self, run: CleanupRun, plan: CleanupPlan, items: Iterable[Item] = ()) -> tuple[JournalEntry, ...]:
        """Write down a run, its plan, and what it may do of that; return the latter."""
        entries = tuple(JournalEntry(item=item, place=place) for place, item in enumerate(items))
        with self._database.transaction() as session:
            _put_run(session, run)
            session.run("UPDATE runs SET plan = ? WHERE id = ?", (msgspec.json.encode(plan), run.id))
            for entry in entries:
                _put_entry(session, run.id, entry)
            session.run(
                "DELETE FROM runs WHERE place <= (SELECT place FROM runs ORDER BY place DESC LIMIT 1 OFFSET ?)",
                (MAX_RUNS,),
            )
            session.run("DELETE FROM items WHERE run NOT IN (SELECT id FROM runs) AND trash IS NULL")
        if run.state is RunState.PLANNED:  # that is all there is to it
            self.figures.run_ended(run.policy, run.end, run.freed_bytes)
        return entries

    def write(self, run: CleanupRun, entry: JournalEntry) -> None:
        """Write down how far an item is, and with it the run."""
        with self._database.transaction() as session:
            _put_run(session, run)
            _put_entry(session, run.id, entry)
        if entry.ended_at is not None:
            self.figures.item_ended(run.policy, entry.state)

    def end(self, run: CleanupRun, messages: Iterable[Notification] = ()) -> None:
        """Write down that a run is over, and what is told of it."""
        with self._database.transaction() as session:
            _put_run(session, run)
            _put_messages(session, messages)
        self.figures.run_ended(run.policy, run.end, run.freed_bytes)

    def last_runs(self) -> dict[str, float]:
        """Return when the last run of each policy began."""
        return dict(self._database.select("SELECT policy, max(started_at) FROM runs GROUP BY policy"))

    def open_runs(self) -> tuple[CleanupRun, ...]:
        """Return the runs that were begun and never ended, oldest first."""
        rows = self._database.select("SELECT body FROM runs WHERE state = 'running' ORDER BY place")
        return _decoded(rows, CleanupRun)

    def runs(self, limit: int, policy: str | None = None, node: str | None = None) -> tuple[CleanupRun, ...]:
        """Return the latest runs, of a policy and on a node if these are given, the last one first."""
        query = "SELECT body FROM runs WHERE policy = ifnull(?, policy) AND node = ifnull(?, node)"
        rows = self._database.select(f"{query} ORDER BY place DESC LIMIT ?", (policy, node, limit))
        return _decoded(rows, CleanupRun)

    def plan(self, run: str) -> CleanupPlan | None:
        """Return the plan of a run."""
        rows = self._database.select("SELECT plan FROM runs WHERE id = ? AND plan IS NOT NULL", (run,))
        return next(iter(_decoded(rows, CleanupPlan)), None)

    def entries(self, run: str) -> tuple[JournalEntry, ...]:
        """Return the items of a run, in their order."""
        return _decoded(
            self._database.select("SELECT body FROM items WHERE run = ? ORDER BY place", (run,)), JournalEntry
        )

    def ended_since(self, at: float) -> tuple[JournalEntry, ...]:
        """Return the items that ended after a time, and those that were intended and have not ended."""
        query = "SELECT body FROM items WHERE ended_at >= ? OR state = 'intended'"
        return _decoded(self._database.select(query, (at,)), JournalEntry)

    def kept_since(self) -> float | None:
        """Return when the oldest run that is kept began; None if none was ever forgotten."""
        rows = self._database.select("SELECT place, started_at FROM runs ORDER BY place LIMIT 1")
        return float(rows[0][1]) if rows and rows[0][0] > 1 else None

    def refused_since(self, at: float) -> frozenset[str]:
        """Return the ids of items that were refused after a time."""
        rows = self._database.select("SELECT id FROM items WHERE ended_at >= ? AND state = 'refused'", (at,))
        return frozenset(own for (own,) in rows)

    def trashed(self, trash: str) -> JournalEntry | None:
        """Given the id of something in a trash, return the item that put it there; None if it was none of ours."""
        rows = self._database.select("SELECT body FROM items WHERE trash = ? ORDER BY ended_at DESC", (trash,))
        return next(iter(_decoded(rows, JournalEntry)), None)

    # What owners and administrators were told

    def tell(self, policy: str, told: Mapping[str, str | None], messages: Iterable[Notification], now: float) -> None:
        """Write down that owners (by item id) are told now, together with the messages that tell them."""
        with self._database.transaction() as session:
            for own, owner in told.items():
                session.run("INSERT OR REPLACE INTO notices VALUES (?, ?, ?, ?)", (policy, own, now, owner))
            session.run("DELETE FROM notices WHERE told_at < ?", (now - KEEP_NOTICES_SECONDS,))
            _put_messages(session, messages)

    def notices(self, policy: str) -> dict[str, float]:
        """Return when the owner of which item was last told."""
        return dict(self._database.select("SELECT id, told_at FROM notices WHERE policy = ?", (policy,)))

    def announce(self, policy: str, fingerprint: str, messages: Iterable[Notification], now: float) -> None:
        """Write down that a policy is announced now, if it is the first time, and with that what announces it."""
        with self._database.transaction() as session:
            key = (policy, fingerprint)
            if not session.run("SELECT 1 FROM announced WHERE policy = ? AND fingerprint = ?", key):
                session.run("INSERT INTO announced VALUES (?, ?, ?)", (*key, now))
                _put_messages(session, messages)

    def announced_at(self, policy: str, fingerprint: str) -> float | None:
        """Return when a policy, as it is now, was announced."""
        query = "SELECT at FROM announced WHERE policy = ? AND fingerprint = ?"
        rows = self._database.select(query, (policy, fingerprint))
        return float(rows[0][0]) if rows else None

    def note_tried(self, own: str, now: float) -> None:
        """Write down that the eviction of an item was tried; the first time counts."""
        with self._database.transaction() as session:
            session.run("INSERT OR IGNORE INTO tried VALUES (?, ?)", (own, now))
            session.run("DELETE FROM tried WHERE at < ?", (now - KEEP_NOTICES_SECONDS,))

    def tried(self) -> dict[str, float]:
        """Return when the eviction of which item was first tried."""
        return dict(self._database.select("SELECT id, at FROM tried"))

    # Messages on their way to the outbox of alerts

    def messages(self, after: int) -> tuple[tuple[int, Notification], ...]:
        """Return the messages from a place on, each with its own."""
        rows = self._database.select("SELECT place, body FROM messages WHERE place > ? ORDER BY place", (after,))
        return tuple((place, msgspec.json.decode(body, type=Notification)) for place, body in rows)

    def forget_messages(self, until: int) -> None:
        """Forget the messages up to a place: they are in the outbox."""
        with self._database.transaction() as session:
            session.run("DELETE FROM messages WHERE place <= ?", (until,))

    # Small things that a restart must not forget

    def note(self, name: str) -> str | None:
        """Return what was last remembered under a name. `journal` is this file's own id."""
        rows = self._database.select("SELECT body FROM notes WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def put_note(self, name: str, body: str) -> None:
        """Remember something under a name."""
        with self._database.transaction() as session:
            session.run("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, body))

    def say_once(self, name: str, mark: str, messages: Iterable[Notification]) -> None:
        """Remember a mark under a name, and tell something, unless that mark is what was remembered."""
        with self._database.transaction() as session:
            if session.run("SELECT 1 FROM notes WHERE name = ? AND body = ?", (name, mark)):
                return
            session.run("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, mark))
            _put_messages(session, messages)


def new_id(prefix: str) -> str:
    """Return an id that nobody has used."""
    return f"{prefix}-{secrets.token_hex(8)}"


def _put_run(session: Session, run: CleanupRun) -> None:
    session.run(
        """
        INSERT INTO runs (id, policy, node, state, started_at, body) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body
        """,
        (run.id, run.policy, run.node or "", run.state, run.started_at, msgspec.json.encode(run)),
    )


def _put_entry(session: Session, run: str, entry: JournalEntry) -> None:
    values = (run, entry.place, entry.item.id, entry.state, entry.request, entry.ended_at, entry.trash)
    session.run("INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*values, msgspec.json.encode(entry)))


def _put_messages(session: Session, messages: Iterable[Notification]) -> None:
    for message in messages:
        session.run("INSERT INTO messages (body) VALUES (?)", (msgspec.json.encode(message),))


def _decoded(rows: Iterable[Row], form: type[T]) -> tuple[T, ...]:
    return tuple(msgspec.json.decode(body, type=form) for (body,) in rows)
