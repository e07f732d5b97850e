"""Opening, migrating and rescuing SQLite files."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any, Protocol
from urllib.parse import quote

from monitor.base.private_files import make_private_directory, open_private
from monitor.base.sqlite_salvage import SalvageReport, salvage

RESCUE_TIMEOUT_SECONDS = 0.2  # for a lock, on each way to read a file that cannot be opened
SIDE_FILES = ("-wal", "-shm")


Row = tuple[Any, ...]
Values = Sequence[str | bytes | int | float | None]


class Run(Protocol):
    """Runs one statement of a migration and returns its rows."""

    def __call__(self, statement: str, values: Values = (), /) -> list[Row]: ...


Migration = str | Callable[[Run], None]  # a script, or a function that changes rows


class NewerSchemaError(Exception):
    """The file has a newer schema than this program knows."""


def connect(path: str, timeout: float, uri: bool = False) -> sqlite3.Connection:
    """Connection that waits `timeout` seconds for locks and leaves transactions to its user. Raise DatabaseError."""
    return sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False, uri=uri)


def open_migrated(path: str, migrations: Sequence[Migration], timeout: float) -> sqlite3.Connection:
    """Connection to a file that can be written, created if missing.

    Raise NewerSchemaError, DatabaseError if the file is damaged or locked for `timeout` seconds, or OSError.
    """
    make_private_directory(os.path.dirname(path) or ".")
    os.close(open_private(path, os.O_RDWR))
    connection = connect(path, timeout)
    try:
        check_version(connection, migrations)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise _damaged(found)
        migrate(connection, migrations)
        connection.execute("BEGIN IMMEDIATE")  # fails if another process holds a lock
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def check_version(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> int:
    """Schema version of a file. Raise NewerSchemaError, or DatabaseError if it cannot be read."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(migrations):
        raise NewerSchemaError(f"its schema version is {version}; this version knows versions up to {len(migrations)}")
    return version


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Apply the migrations that a file has not seen yet. Raise NewerSchemaError or DatabaseError."""
    version = check_version(connection, migrations)
    for number, migration in enumerate(migrations[version:], version + 1):
        seen = f"PRAGMA user_version = {number}"
        try:
            if isinstance(migration, str):
                connection.executescript(f"BEGIN IMMEDIATE; {migration}; {seen}; COMMIT")
            else:
                connection.execute("BEGIN IMMEDIATE")
                migration(lambda statement, values=(): connection.execute(statement, values).fetchall())
                connection.execute(seen)
                connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise


def rescue(path: str, target: sqlite3.Connection, migrations: Sequence[Migration]) -> SalvageReport | None:
    """Copy what is readable of a file that cannot be opened for writing, and migrate `target`; None if nothing is.

    Raise DatabaseError if `target` cannot be written.
    """
    if not os.path.exists(path):
        migrate(target, migrations)
        return SalvageReport()
    with _reading(path) as source:
        report = None
        if source is not None:
            migrate(target, migrations[: _common_version(source, target, migrations)])
            report = salvage(source, target)
    migrate(target, migrations)
    return report


def _common_version(source: sqlite3.Connection, target: sqlite3.Connection, migrations: Sequence[Migration]) -> int:
    """Version to which `target` is migrated before rows of `source` are copied: that of `source` if it is known."""
    oldest = check_version(target, migrations)
    try:
        version = check_version(source, migrations) or len(migrations)
    except (NewerSchemaError, sqlite3.Error):
        version = len(migrations)
    return max(oldest, version)


@contextmanager
def _reading(path: str) -> Iterator[sqlite3.Connection | None]:
    """Connection that can read a file; None if there is none. The file is not changed if that can be avoided.

    Without a WAL, the file alone is complete (immutable). On a full disk the index of the WAL cannot be created, and a
    process may hold a lock that excludes readers: then a copy is read, or a private index is used (EXCLUSIVE).
    """
    with ExitStack() as opened:
        way = "?mode=ro" if os.path.exists(f"{path}-wal") else "?immutable=1"
        connection = _try_read(f"file:{quote(path)}{way}", "NORMAL")
        if connection is None:
            with suppress(OSError):
                copy = _copy(path, opened.enter_context(tempfile.TemporaryDirectory(prefix="gpuwarden-")))
                connection = _try_read(f"file:{quote(copy)}", "NORMAL")
        if connection is None:
            connection = _try_read(f"file:{quote(path)}", "EXCLUSIVE")
        yield opened.enter_context(closing(connection)) if connection is not None else None


def _copy(path: str, directory: str) -> str:
    copy = os.path.join(directory, "copy.db")
    shutil.copyfile(path, copy)
    with suppress(FileNotFoundError):
        shutil.copyfile(f"{path}-wal", f"{copy}-wal")
    return copy


def _try_read(uri: str, locking: str) -> sqlite3.Connection | None:
    connection = None
    try:
        connection = connect(uri, RESCUE_TIMEOUT_SECONDS, uri=True)
        connection.execute(f"PRAGMA locking_mode = {locking}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        if connection is not None:
            connection.close()
        return None
    return connection


def _damaged(found: str) -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError(found)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error
