"""Copies what is readable of a SQLite file, table by table, past pages that cannot be read.

The Python module has no recovery of its own. A table is read in the order of its keys. Where a page cannot be read, the
next readable key is searched in growing steps; the keys in between are read backwards and then one by one.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

Row = tuple[Any, ...]

CHUNK_ROWS = 200
MAX_ROWID = (1 << 63) - 1
MAX_SINGLE_READS = 5000  # rows of one table that are tried one by one
MAX_SECONDS = 60.0
LOST_SEQUENCE_GAP_ROWS = 1_000_000  # added to a sequence that is lost: ids must not be used again


@dataclass
class SalvageReport:
    """Rows copied by table, and the tables with rows that could not be read."""

    rows: dict[str, int] = field(default_factory=dict)
    incomplete: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kept = f"{sum(self.rows.values())} rows were kept"
        return f"{kept}; incomplete: {', '.join(self.incomplete)}" if self.incomplete else f"{kept}, none is missing"


def salvage(source: sqlite3.Connection, target: sqlite3.Connection, seconds: float = MAX_SECONDS) -> SalvageReport:
    """Copy rows into the tables of `target`, which keeps its own rows with the same key.

    Columns that only one of the two files has are left out. Raise DatabaseError if `target` cannot be written.
    """
    source.text_factory = lambda text: text.decode("utf-8", "replace")
    report, deadline = SalvageReport(), time.monotonic() + seconds
    target.execute("BEGIN IMMEDIATE")
    try:
        for table in _tables(target):
            copier = _TableCopier(source, target, table, deadline)
            complete = copier.copy()
            report.rows[table] = copier.copied
            if not complete:
                report.incomplete.append(table)
        _copy_sequences(source, target)
        target.execute("COMMIT")
    except BaseException:
        target.execute("ROLLBACK")
        raise
    return report


def reserve_sequences(target: sqlite3.Connection, start: int) -> None:
    """Let the automatic ids of all tables start after `start`."""
    for table in _automatic(target):
        _put_sequence(target, table, start)


class _TableCopier:
    """Copies one table. `copied` counts its rows."""

    def __init__(self, source: sqlite3.Connection, target: sqlite3.Connection, table: str, deadline: float) -> None:
        self._source = source
        self._target = target
        self._table = table
        self._deadline = deadline
        self.copied = 0
        self._key, self._columns = _layout(target, table)

    def copy(self) -> bool:
        """Copy all readable rows, and return whether no row was left out."""
        try:
            known = {row[1] for row in self._source.execute(f"PRAGMA table_info({self._table})")}
        except sqlite3.Error:
            return False
        if not known:
            return True  # an older file without this table
        self._columns = [column for column in self._columns if column in known]
        return self._copy_by_rowid() if self._key == ["rowid"] else self._copy_from_both_ends()

    def _copy_by_rowid(self) -> bool:
        complete, position = True, 0
        while True:
            low, ended = self._run(position, MAX_ROWID)
            if ended:
                return complete
            high = self._next_readable(low)
            if high is None:
                return False
            complete = self._copy_gap(low, high) and complete
            position = high - 1

    def _copy_gap(self, low: int, high: int) -> bool:
        """Copy the readable rows between two rowids, and return whether there are no others."""
        last, ended = self._run(low, high, descending=True)
        if ended:
            return True
        complete = last - low <= MAX_SINGLE_READS
        for rowid in range(low + 1, min(last, low + 1 + MAX_SINGLE_READS)):
            try:
                self._put(self._select("rowid = ?", (rowid,), 1))
            except sqlite3.Error:
                complete = False
        return complete

    def _next_readable(self, low: int) -> int | None:
        """Rowid after `low` from which the table can be read; None if none is found."""
        for step in (1 << power for power in range(63)):
            if low + step >= MAX_ROWID or time.monotonic() > self._deadline:
                return None
            with suppress(sqlite3.Error):
                self._select("rowid >= ?", (low + step,), 1)
                return low + step
        return None

    def _run(self, low: int, high: int, *, descending: bool = False) -> tuple[int, bool]:
        """Copy rows between two rowids until one cannot be read; return the last rowid and whether all were read."""
        last, size = (high if descending else low), CHUNK_ROWS
        while time.monotonic() < self._deadline:
            bounds = (low, last) if descending else (last, high)
            try:
                rows = self._select("rowid > ? AND rowid < ?", bounds, size, descending=descending)
            except sqlite3.Error:
                if size == 1:
                    return last, False
                size = 1  # the rows before the unreadable one
                continue
            if not rows:
                return last, True
            self._put(rows)
            last = rows[-1][0]
        return last, False

    def _copy_from_both_ends(self) -> bool:
        """Copy a table without rowids. Rows between two unreadable pages are left out."""
        return self._run_by_key(descending=False) or (self._run_by_key(descending=True) and False)

    def _run_by_key(self, *, descending: bool) -> bool:
        condition, values, size = "1", (), CHUNK_ROWS
        marks, names = ", ".join("?" * len(self._key)), ", ".join(self._key)
        while time.monotonic() < self._deadline:
            try:
                rows = self._select(condition, values, size, descending=descending)
            except sqlite3.Error:
                if size == 1:
                    return False
                size = 1
                continue
            if not rows:
                return True
            self._put(rows)
            condition, values = f"({names}) {'<' if descending else '>'} ({marks})", rows[-1][: len(self._key)]
        return False

    def _select(self, condition: str, values: Row, limit: int, *, descending: bool = False) -> list[Row]:
        names = ", ".join((*self._key, *self._columns))
        order = ", ".join(f"{column} DESC" if descending else column for column in self._key)
        query = f"SELECT {names} FROM {self._table} NOT INDEXED WHERE {condition} ORDER BY {order} LIMIT {limit}"  # noqa: S608  # names of our own tables
        return self._source.execute(query, values).fetchall()

    def _put(self, rows: list[Row]) -> None:
        names, marks = ", ".join(self._columns), ", ".join("?" * len(self._columns))
        statement = f"INSERT OR IGNORE INTO {self._table} ({names}) VALUES ({marks})"  # noqa: S608  # as above
        for row in rows:
            with suppress(sqlite3.IntegrityError):  # a value of the wrong type
                self.copied += self._target.execute(statement, row[len(self._key) :]).rowcount


def _tables(target: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return [name for (name,) in target.execute(query)]


def _layout(target: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """Columns by which a table is ordered in its file, and all its columns."""
    columns = target.execute(f"PRAGMA table_info({table})").fetchall()
    primary = [row[1] for row in sorted(columns, key=lambda row: row[5]) if row[5]]
    without_rowid = target.execute(f"PRAGMA table_list({table})").fetchone()[4]
    return (primary if without_rowid else ["rowid"]), [row[1] for row in columns]


def _automatic(target: sqlite3.Connection) -> list[str]:
    """Tables whose ids are never used again after a row is deleted."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'"
    return [name for (name,) in target.execute(query)]


def _copy_sequences(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    tables = _automatic(target)
    try:
        last_ids = dict(source.execute("SELECT name, seq FROM sqlite_sequence")) if tables else {}
    except sqlite3.Error:
        highest = {table: target.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0 for table in tables}  # noqa: S608  # as above
        last_ids = {table: rowid + LOST_SEQUENCE_GAP_ROWS for table, rowid in highest.items()}
    for table in tables:
        if isinstance(last_ids.get(table), int):
            _put_sequence(target, table, last_ids[table])


def _put_sequence(target: sqlite3.Connection, table: str, last_id: int) -> None:
    if target.execute("SELECT 1 FROM sqlite_sequence WHERE name = ?", (table,)).fetchone():
        target.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (last_id, table))
    else:
        target.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last_id))
