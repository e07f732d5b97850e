"""Keeps in the cleanup journal, and the links that were used."""

from __future__ import annotations

import msgspec

from monitor.base.sqlite import Database, DatabaseSession
from monitor.cleanup.plan.keeps import Answer, AnswerKind, Keep

KEEPS_TABLES = """
CREATE TABLE keeps (item TEXT PRIMARY KEY, until REAL NOT NULL, body BLOB NOT NULL);
CREATE TABLE answered (link TEXT PRIMARY KEY, expires_at REAL NOT NULL);
"""
ANSWERS_COLUMN = "ALTER TABLE answered ADD COLUMN body BLOB;"
REMEMBERED_SECONDS = 30 * 86400.0  # a past keep still shows who asked for it


class KeepStore:
    """Keeps and used links. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, Keep]:
        """Keeps by item, also past ones."""
        keeps = {}
        for item, body in self._database.select("SELECT item, body FROM keeps"):
            keeps[str(item)] = msgspec.json.decode(body, type=Keep)
        return keeps

    def answer(self, link: str) -> Answer | None:
        """What a link was used for; None if it was not used."""
        rows = self._database.select("SELECT body FROM answered WHERE link = ?", (link,))
        if not rows:
            return None
        return msgspec.json.decode(rows[0][0], type=Answer) if rows[0][0] is not None else Answer()

    def record(self, keep: Keep, link: str, link_expires_at: float) -> bool:
        """Record the answer to a link; return False, without a change, if the link was already used."""
        answer = Answer(kind=AnswerKind.KEEP, name=keep.name, at=keep.at)
        with self._database.transaction() as session:
            if not _use(session, link, link_expires_at, answer):
                return False
            values = (keep.item, keep.until, msgspec.json.encode(keep))
            session.run("INSERT OR REPLACE INTO keeps VALUES (?, ?, ?)", values)
            session.run("DELETE FROM answered WHERE expires_at < ?", (keep.at,))
            session.run("DELETE FROM keeps WHERE until < ?", (keep.at - REMEMBERED_SECONDS,))
        return True

    def use(self, link: str, link_expires_at: float, answer: Answer) -> bool:
        """Use a link for a release that is about to begin; return False if it was already used."""
        with self._database.transaction() as session:
            return _use(session, link, link_expires_at, answer)

    def give_back(self, link: str) -> None:
        """Make a link usable again whose release was not carried out."""
        with self._database.transaction() as session:
            session.run("DELETE FROM answered WHERE link = ?", (link,))

    def end(self, item: str) -> None:
        """End the keep of an item that was released."""
        with self._database.transaction() as session:
            session.run("DELETE FROM keeps WHERE item = ?", (item,))


def _use(session: DatabaseSession, link: str, expires_at: float, answer: Answer) -> bool:
    if session.run("SELECT 1 FROM answered WHERE link = ?", (link,)):
        return False
    session.run("INSERT INTO answered VALUES (?, ?, ?)", (link, expires_at, msgspec.json.encode(answer)))
    return True
