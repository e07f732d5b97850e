"""The history in one SQLite file: a block per group and hour, and a journal of the current hour.

How many hours are kept is counted, not computed from the clock: a clock that is set wrong for a moment must not delete
the past.
"""

from __future__ import annotations

import hashlib
import logging
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import msgspec

from monitor.base.sqlite import Database, DatabaseSession
from monitor.base.state_problems import StateProblem
from monitor.base.state_size import compact
from monitor.history.blocks import (
    MIN_LEVEL,
    BlockError,
    Layout,
    UnpackedBlock,
    decode_layout,
    inflated,
    pack_column,
    unpack_column,
)
from monitor.history.model import (
    COARSE_POINTS,
    COARSE_SECONDS,
    FINE_POINTS,
    FINE_SPAN_SECONDS,
    HOUR_SECONDS,
    METRICS,
    MINUTE_SECONDS,
    SPAN_SECONDS,
)
from monitor.history.node_loads import NODE_LOADS_GROUP, NodeLoads, unpacked_coarse_loads, unpacked_loads
from monitor.history.open_hour import HourBlock, JournalEntity, JournalMinute, OpenHour

log = logging.getLogger(__name__)
FILE = "history.db"
MAX_FINE_HOURS = FINE_SPAN_SECONDS // HOUR_SECONDS + 1  # the oldest is used in part
MAX_HOURS = SPAN_SECONDS // HOUR_SECONDS + 1
GROUPS_PER_TRANSACTION_COUNT = 100  # readers get their turn in between
MAX_CACHED_LAYOUTS = 4096
MIGRATIONS = (
    """
CREATE TABLE hours (hour INTEGER PRIMARY KEY, fine INTEGER NOT NULL);
CREATE TABLE layouts (id INTEGER PRIMARY KEY, used INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE blocks (
    series TEXT NOT NULL, hour INTEGER NOT NULL, layout INTEGER NOT NULL, coarse BLOB NOT NULL, fine BLOB,
    PRIMARY KEY (series, hour)
);
CREATE INDEX blocks_hour ON blocks (hour);
CREATE TABLE minutes (at INTEGER PRIMARY KEY, entities BLOB NOT NULL, body BLOB NOT NULL);
""",
)


@dataclass(frozen=True)
class StoredBlock:
    """Figures of one group in one hour, with one point per minute, or per ten minutes unless `fine`."""

    hour: int
    layout: Layout
    block: UnpackedBlock
    fine: bool


class _BlockRow(NamedTuple):
    """A stored block before it is decoded."""

    hour: int
    layout: int
    body: bytes
    fine: bool


class HistoryStore:
    """The database file. Thread-safe. Methods raise DatabaseError."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._database = Database(path, MIGRATIONS)
        self._layouts: dict[int, Layout] = {}

    @property
    def problem(self) -> StateProblem | None:
        """Why the file is not written at the moment; None if it is."""
        return self._database.problem

    def close(self) -> None:
        self._database.close()

    def put_minutes(self, hour: int, minutes: Iterable[JournalMinute]) -> None:
        """Add minutes to the journal, or replace them."""
        with self._database.transaction() as session:
            for minute in minutes:
                at = hour + minute.minute * MINUTE_SECONDS
                known = session.run("SELECT entities FROM minutes WHERE at = ?", (at,))
                before = _decode_entities(known[0][0]) if known else ()
                entities = zlib.compress(msgspec.json.encode((*before, *minute.entities)), MIN_LEVEL)
                values = (at, entities, pack_column(minute.column))
                session.run("INSERT OR REPLACE INTO minutes VALUES (?, ?, ?)", values)

    def journal(self) -> tuple[OpenHour, ...]:
        """The hours that have not ended, or that ended while no daemon ran, oldest first."""
        hours: dict[int, list[JournalMinute]] = {}
        for at, entities, body in self._database.select("SELECT at, entities, body FROM minutes ORDER BY at"):
            start = at // HOUR_SECONDS * HOUR_SECONDS
            minutes = hours.setdefault(start, [])
            try:
                column, number = unpack_column(body), (at - start) // MINUTE_SECONDS
                minutes.append(JournalMinute(number, column, _decode_entities(entities)))
            except BlockError as error:
                log.warning("a minute of the history is lost: %s", error)
        return tuple(self._restored(start, minutes) for start, minutes in hours.items())

    def _restored(self, start: int, minutes: list[JournalMinute]) -> OpenHour:
        hour = OpenHour(start)
        hour.restore(minutes)
        self._restore_blocks(hour)
        return hour

    def open_hour(self, start: int) -> OpenHour:
        """An hour to which samples can be added; it has those that are stored, if the clock was set back into it."""
        opened = OpenHour(start)
        self._restore_blocks(opened)
        return opened

    def _restore_blocks(self, opened: OpenHour) -> None:
        """Add the blocks of an hour that was stored completely."""
        rows = self._database.select(
            "SELECT layout, blocks.fine FROM blocks JOIN hours USING (hour)"
            " WHERE hour = ? AND hours.fine AND series != ?",
            (opened.start, NODE_LOADS_GROUP),
        )
        for layout, fine in rows:
            try:
                opened.restore_block(self._layout(layout), UnpackedBlock(fine, FINE_POINTS))
            except (BlockError, ValueError) as error:
                log.warning("a block of the history is lost: %s", error)

    def close_hour(self, hour: OpenHour) -> None:
        """Store an hour, remove it from the journal, and delete what is too old."""
        blocks = hour.blocks()
        while batch := tuple(islice(blocks, GROUPS_PER_TRANSACTION_COUNT)):
            with self._database.transaction() as session:
                for block in batch:
                    self._put_block(session, hour.start, block)
        with self._database.transaction() as session:
            session.run("INSERT OR REPLACE INTO hours VALUES (?, 1)", (hour.start,))
            end = hour.start + HOUR_SECONDS
            session.run("DELETE FROM minutes WHERE at >= ? AND at < ?", (hour.start, end))
            _prune(session, end)

    def blocks(self, series: str, since: int, until: int, *, fine: bool) -> Iterator[StoredBlock]:
        """Blocks of a group for the hours in [since, until), oldest first; coarse ones where no fine ones are kept."""
        for row in self._rows(series, since, until, fine=fine):
            try:
                block = UnpackedBlock(row.body, FINE_POINTS if row.fine else COARSE_POINTS)
                yield StoredBlock(row.hour, self._layout(row.layout), block, row.fine)
            except BlockError as error:
                log.warning("a block of the history is lost: %s", error)

    def node_loads(self, since: int, until: int, point_seconds: int) -> Iterator[NodeLoads]:
        """Utilisation of all nodes in the hours in [since, until), oldest first.

        Points are a minute, ten minutes or an hour long; ten minutes where no minutes are kept.
        """
        for row in self._rows(NODE_LOADS_GROUP, since, until, fine=point_seconds == MINUTE_SECONDS):
            try:
                layout = self._layout(row.layout)
                if row.fine:
                    yield unpacked_loads(row.hour, layout, row.body)
                else:
                    yield unpacked_coarse_loads(row.hour, max(point_seconds, COARSE_SECONDS), layout, row.body)
            except BlockError as error:
                log.warning("an hour of the heat map is lost: %s", error)

    def _rows(self, series: str, since: int, until: int, *, fine: bool) -> Iterator[_BlockRow]:
        detail = "fine" if fine else "NULL"
        rows = self._database.select(
            f"SELECT hour, layout, CASE WHEN {detail} IS NULL THEN coarse END, {detail} FROM blocks"  # noqa: S608  # constants only
            " WHERE series = ? AND hour >= ? AND hour < ? ORDER BY hour",
            (series, since, until),
        )
        for hour, layout, coarse_body, fine_body in rows:
            yield _BlockRow(hour, layout, coarse_body if fine_body is None else fine_body, fine_body is not None)

    def shrink(self) -> bool:
        """Delete the older half of the hours. Return whether there were any besides the last."""
        first, last = self._database.select("SELECT MIN(hour), MAX(hour) FROM hours")[0]
        if first is None or first == last:
            return False
        with self._database.transaction() as session:
            _delete_hours(session, "hour <= ?", (first + last) // 2)
        compact(self._database, self._path)
        return True

    def _put_block(self, session: DatabaseSession, hour: int, block: HourBlock) -> None:
        digest = hashlib.blake2b(block.layout, digest_size=7).digest()
        layout = int.from_bytes(digest, "big")
        session.run(
            "INSERT INTO layouts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET used = MAX(used, excluded.used)",
            (layout, hour, block.layout),
        )
        values = (block.group, hour, layout, block.coarse, block.fine)
        session.run("INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?)", values)

    def _layout(self, number: int) -> Layout:
        """Raise BlockError."""
        if number not in self._layouts:
            rows = self._database.select("SELECT body FROM layouts WHERE id = ?", (number,))
            if not rows:
                raise BlockError("its layout is missing")
            if len(self._layouts) >= MAX_CACHED_LAYOUTS:
                self._layouts.clear()
            self._layouts[number] = decode_layout(rows[0][0])
        return self._layouts[number]


def _prune(session: DatabaseSession, now: int) -> None:
    """Delete hours beyond those that are kept, first those in the future, and the minutes of all but the latest."""
    hours = [row[0] for row in session.run("SELECT hour FROM hours WHERE hour < ? ORDER BY hour DESC", (now,))]
    if len(hours) > MAX_HOURS:
        _delete_hours(session, "hour < ?", hours[MAX_HOURS - 1])
    (total,) = session.run("SELECT COUNT(*) FROM hours")[0]
    if total > MAX_HOURS:
        _delete_hours(session, "hour >= ?", now)
    if len(hours) > MAX_FINE_HOURS:
        oldest = hours[MAX_FINE_HOURS - 1]
        for (hour,) in session.run("SELECT hour FROM hours WHERE fine AND hour < ?", (oldest,)):
            session.run("UPDATE blocks SET fine = NULL WHERE hour = ?", (hour,))
            session.run("UPDATE hours SET fine = 0 WHERE hour = ?", (hour,))


def _delete_hours(session: DatabaseSession, condition: str, hour: int) -> None:
    for table in ("hours", "blocks"):
        session.run(f"DELETE FROM {table} WHERE {condition}", (hour,))  # noqa: S608  # constants only
    session.run("DELETE FROM layouts WHERE used < (SELECT COALESCE(MIN(hour), 0) FROM hours)")


def _decode_entities(body: bytes) -> tuple[JournalEntity, ...]:
    """Raise BlockError."""
    try:
        entities = msgspec.json.decode(inflated(body), type=tuple[JournalEntity, ...])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BlockError(str(error)) from None
    return tuple(entity for entity in entities if entity.subject in METRICS)
