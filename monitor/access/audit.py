"""The audit log: an append-only record of every requested change and its result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

from monitor.access.principal import Principal
from monitor.base.sqlite import Database, DatabaseError
from monitor.base.state_problems import StateProblem
from monitor.base.state_size import compact
from monitor.base.text import clean, shorten
from monitor.facts.base import Fact

log = logging.getLogger(__name__)
FILE = "audit.db"
MIGRATIONS = (
    """
CREATE TABLE deeds (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, who TEXT NOT NULL, role TEXT NOT NULL, how TEXT NOT NULL,
    peer TEXT NOT NULL, what TEXT NOT NULL, target TEXT NOT NULL, result TEXT NOT NULL, detail TEXT NOT NULL
)
""",
)
MAX_ENTRIES = 100_000
MAX_TEXT_CHARS = 1000


class AuditEntry(Fact, frozen=True, kw_only=True):
    """A requested change. `result` is done, refused or failed; `on` is the target."""

    id: int
    at: float
    who: str
    role: str
    how: str
    peer: str
    what: str
    on: str
    result: str
    detail: str = ""


class AuditWriter(Protocol):
    """The part of the audit log that other packages write to."""

    def write(
        self, principal: Principal, peer: str, action: str, target: str, result: str, detail: str = "", /
    ) -> None: ...


class AuditLog:
    """The audit log in a SQLite file. Thread-safe."""

    def __init__(self, path: str, now: Callable[[], float] = time.time, max_entries: int = MAX_ENTRIES) -> None:
        self._path = path
        self._database = Database(path, MIGRATIONS)
        self._now = now
        self._max_entries = max_entries

    def write(
        self, principal: Principal, peer: str, action: str, target: str, result: str, detail: str = "", /
    ) -> None:
        """Append an entry, and drop the oldest ones beyond the limit."""
        texts: tuple[str, ...] = (
            principal.name, principal.role, principal.method, peer, action, target, result, detail,
        )  # fmt: skip
        values: list[str | float] = [self._now(), *(shorten(clean(text), MAX_TEXT_CHARS) for text in texts)]
        statement = (
            "INSERT INTO deeds (at, who, role, how, peer, what, target, result, detail)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
        )
        try:
            with self._database.transaction() as session:
                last = session.run(statement, values)[0][0]
                session.run("DELETE FROM deeds WHERE id <= ?", (last - self._max_entries,))
        except DatabaseError as error:  # the action has been taken and must not fail because of its record
            log.error("cannot write audit entry for %s by %s: %s", action, principal.name, error)

    def latest(self, limit: int, before: int | None = None) -> tuple[AuditEntry, ...]:
        """Up to `limit` entries, newest first; with `before`, only those with a smaller id."""
        rows = self._database.select(
            "SELECT id, at, who, role, how, peer, what, target, result, detail FROM deeds"
            " WHERE id < ? ORDER BY id DESC LIMIT ?",
            (before if before is not None else 1 << 62, limit),
        )
        names = ("id", "at", "who", "role", "how", "peer", "what", "on", "result", "detail")
        return tuple(AuditEntry(**dict(zip(names, row, strict=True))) for row in rows)

    @property
    def problem(self) -> StateProblem | None:
        """Why the file is not written at the moment; None if it is."""
        return self._database.problem

    def shrink(self) -> bool:
        """Delete the older half of the entries. Return whether there were any."""
        with self._database.transaction() as session:
            deleted = session.run(
                "DELETE FROM deeds WHERE id <= (SELECT (MIN(id) + MAX(id)) / 2 FROM deeds) RETURNING 1"
            )
        if deleted:
            compact(self._database, self._path)
        return bool(deleted)

    def close(self) -> None:
        self._database.close()
