"""Keeps in the cleanup journal, and the links that were used."""

from __future__ import annotations

import msgspec

from monitor.base.sqlite import Database
from monitor.cleanup.plan.keeps import Keep

KEEPS_TABLES = """
CREATE TABLE keeps (item TEXT PRIMARY KEY, until REAL NOT NULL, body BLOB NOT NULL);
CREATE TABLE answered (link TEXT PRIMARY KEY, expires_at REAL NOT NULL);
"""
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

    def is_answered(self, link: str) -> bool:
        return bool(self._database.select("SELECT 1 FROM answered WHERE link = ?", (link,)))

    def record(self, keep: Keep, link: str, link_expires_at: float) -> bool:
        """Record the answer to a link; return False, without a change, if the link was already used."""
        with self._database.transaction() as session:
            if session.run("SELECT 1 FROM answered WHERE link = ?", (link,)):
                return False
            session.run("INSERT INTO answered VALUES (?, ?)", (link, link_expires_at))
            values = (keep.item, keep.until, msgspec.json.encode(keep))
            session.run("INSERT OR REPLACE INTO keeps VALUES (?, ?, ?)", values)
            session.run("DELETE FROM answered WHERE expires_at < ?", (keep.at,))
            session.run("DELETE FROM keeps WHERE until < ?", (keep.at - REMEMBERED_SECONDS,))
        return True
