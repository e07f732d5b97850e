"""Who did what: a record of every change that somebody asked for, whatever came of it. Only added to."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from monitor.access.principal import Person
from monitor.base.sqlite import Database, DatabaseError
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
KEEP = 100_000
LONGEST = 1000  # characters of a text


class Deed(Fact, frozen=True, kw_only=True):
    """Something that was asked for. `result` is done, refused or failed; `on` is what it was about."""

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


class Audit:
    """The record, in one SQLite file. For use from any thread."""

    def __init__(self, path: str, now: Callable[[], float] = time.time, keep: int = KEEP) -> None:
        self._database = Database(path, MIGRATIONS)
        self._now = now
        self._keep = keep

    def write(self, person: Person, peer: str, what: str, on: str, result: str, detail: str = "") -> None:
        """Write down what somebody asked for and what came of it."""
        texts: tuple[str, ...] = (person.name, person.role, person.how, peer, what, on, result, detail)
        values: list[str | float] = [self._now(), *(_plain(text) for text in texts)]
        statement = (
            "INSERT INTO deeds (at, who, role, how, peer, what, target, result, detail)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"
        )
        try:
            with self._database.transaction() as session:
                last = session.run(statement, values)[0][0]
                session.run("DELETE FROM deeds WHERE id <= ?", (last - self._keep,))
        except DatabaseError as error:  # what was done is done; that it cannot be written down is said
            log.error("the record of %s by %s cannot be written: %s", what, person.name, error)

    def latest(self, limit: int, before: int | None = None) -> tuple[Deed, ...]:
        """Return the latest deeds, the last one first; `before` one of them, to go on from there."""
        rows = self._database.select(
            "SELECT id, at, who, role, how, peer, what, target, result, detail FROM deeds"
            " WHERE id < ? ORDER BY id DESC LIMIT ?",
            (before if before is not None else 1 << 62, limit),
        )
        names = ("id", "at", "who", "role", "how", "peer", "what", "on", "result", "detail")
        return tuple(Deed(**dict(zip(names, row, strict=True))) for row in rows)

    def close(self) -> None:
        self._database.close()


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)[:LONGEST]
