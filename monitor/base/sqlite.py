"""A SQLite database that stays usable through kill -9, a damaged file and a full disk.

A committed transaction survives the end of the process and of the machine. A damaged file is moved aside and a new one
is created. While the file cannot be written, the database continues in memory with a copy of what could be read, and
moves back as soon as the file is writable again. Only one process may use a file: moving back replaces its content.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any
from urllib.parse import quote

from monitor.base.threads import spawn

log = logging.getLogger(__name__)

DatabaseError = sqlite3.Error
Row = tuple[Any, ...]
Values = Sequence[str | bytes | int | float | None]

BUSY_TIMEOUT_SECONDS = 5.0  # tolerated for an interactive sqlite3 session that holds a lock
RETRY_SECONDS = 5.0  # between attempts to move back to the file
SPARE_BYTES = 1 << 20  # must stay free on the disk after moving back
LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
UNWRITABLE = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
)


class Database:
    """One database file, usable from any thread. `migrations` are the schema scripts, oldest first.

    `trouble` says in one sentence why the file is currently not written; None while it is.
    """

    def __init__(self, path: str, migrations: Sequence[str], retry: float = RETRY_SECONDS) -> None:
        self._path = path
        self._migrations = migrations
        self._retry = retry
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._identity: tuple[int, int] | None = None  # device and inode of the file; None while in memory
        self._unread = False  # an unreadable file lies at the path
        self.trouble: str | None = None
        try:
            self._connection = self._open_file()
        except (DatabaseError, OSError) as error:
            self._connection = self._retreat(str(error), None)

    @contextmanager
    def transaction(self) -> Iterator[DatabaseSession]:
        """A session whose statements take effect together, or not at all if the `with` block raises."""
        with self._lock:
            if self._identity and _identity(self._path) != self._identity:
                self._connection = self._retreat("the file was removed", self._connection)
            session = DatabaseSession(self)
            session.run("BEGIN IMMEDIATE")
            try:
                yield session
                session.run("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def select(self, query: str, values: Values = ()) -> list[Row]:
        """Rows of a read-only query."""
        with self._lock:
            return DatabaseSession(self).run(query, values)

    def close(self) -> None:
        """Close the database, after one last attempt to write what is only in memory."""
        self._closing.set()
        with self._lock:
            if self._identity is None and not self._move_back():
                log.error("changes since then are lost: %s", self.trouble)
            self._connection.close()

    def execute(self, statement: str, values: Values) -> list[Row]:
        """Run one statement without retrying. Used by Session."""
        return self._connection.execute(statement, values).fetchall()

    def recover(self, error: DatabaseError) -> None:
        """Continue in a new file or in memory after a failed statement. Re-raise the error if neither would help."""
        code = _code(error)
        if self._identity is None or code not in DAMAGED | UNWRITABLE:
            raise error
        self._roll_back()
        if code in UNWRITABLE:
            self._connection = self._retreat(str(error), self._connection)
            return
        self._connection.close()
        try:
            self._set_aside("damaged", str(error))
            self._connection = self._open_file()
        except (DatabaseError, OSError) as another:
            self._connection = self._retreat(str(another), None)

    def _roll_back(self) -> None:
        with suppress(DatabaseError):  # a failure may have ended the transaction already
            self._connection.execute("ROLLBACK")

    def _open_file(self) -> sqlite3.Connection:
        """Connection to the migrated file, created if missing. Raise DatabaseError or OSError."""
        try:
            return self._open_as_it_is()
        except _NewerError as error:
            self._set_aside("newer", str(error))
        except DatabaseError as error:
            if _code(error) not in DAMAGED:
                raise
            self._set_aside("damaged", str(error))
        return self._open_as_it_is()

    def _open_as_it_is(self) -> sqlite3.Connection:
        os.makedirs(os.path.dirname(self._path) or ".", mode=0o700, exist_ok=True)
        os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        connection = _connect(self._path)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise _damaged(found)
            self._migrate(connection)
            self._identity = _identity(self._path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(self._migrations):
            raise _NewerError(
                f"its schema version is {version}; this program knows versions up to {len(self._migrations)}"
            )
        for number, script in enumerate(self._migrations[version:], version + 1):
            try:
                connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT")
            except BaseException:
                with suppress(DatabaseError):
                    connection.execute("ROLLBACK")
                raise

    def _set_aside(self, kind: str, why: str) -> None:
        """Move the file and its WAL aside. Raise OSError."""
        aside = f"{self._path}.{kind}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                os.replace(self._path + suffix, aside + suffix)
        log.error("%s cannot be used (%s); moved to %s, starting with a new file", self._path, why, aside)

    def _retreat(self, why: str, source: sqlite3.Connection | None) -> sqlite3.Connection:
        """In-memory database with what can be read of the file; starts retrying to move back."""
        memory = _connect(":memory:")
        self._unread = not (_copied(source, memory) if source else _rescued(self._path, memory))
        self._migrate(memory)
        if source:
            source.close()
        self._identity = None
        self.trouble = f"{self._path} cannot be written: {why}"
        log.error("%s; continuing in memory, changes from now on would not survive a restart", self.trouble)
        spawn("database", self._retry_until_moved)
        return memory

    def _retry_until_moved(self) -> None:
        while not self._closing.wait(self._retry):
            with self._lock:
                if self._closing.is_set() or self._move_back():
                    return

    def _move_back(self) -> bool:
        """Whether everything is in the file again."""
        try:
            if self._unread and os.path.exists(self._path):
                self._set_aside("unread", "it could not be read")
            self._unread = False
            self._need_room()
            file = self._open_file()
        except (DatabaseError, OSError):
            return False
        if not _copied(self._connection, file):
            self._identity = None
            file.close()
            return False
        self._connection.close()
        self._connection = file
        log.info("%s is writable again; nothing was lost", self._path)
        self.trouble = None
        return True

    def _need_room(self) -> None:
        """Raise OSError unless the disk has room for the database twice: in the WAL and in the file."""
        pages, size = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        directory = os.path.dirname(self._path) or "."
        os.makedirs(directory, mode=0o700, exist_ok=True)
        room = os.statvfs(directory)
        if room.f_bavail * room.f_frsize < 2 * pages * size + SPARE_BYTES:
            raise OSError(f"{directory} is full")


class DatabaseSession:
    """The statements of one transaction, repeated in the new place if the file fails under it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._done: list[tuple[str, Values]] = []

    def run(self, statement: str, values: Values = ()) -> list[Row]:
        """Rows of a statement. Raise DatabaseError."""
        try:
            rows = self._database.execute(statement, values)
        except DatabaseError as error:
            rows = self._repeat(error, statement, values)
        self._done.append((statement, values))
        return rows

    def _repeat(self, error: DatabaseError, statement: str, values: Values) -> list[Row]:
        self._database.recover(error)
        try:
            for earlier in self._done:
                self._database.execute(*earlier)
            return self._database.execute(statement, values)
        except DatabaseError as another:  # the new place may fail too; after memory there is none left
            return self._repeat(another, statement, values)


def ask_file(path: str, mode: str, *statements: str) -> list[Row]:
    """Rows of the last statement, run on a file that another process may be using. Raise DatabaseError.

    `mode` is `ro` or `rwc`. For checks that must not take over the file.
    """
    rows: list[Row] = []
    with closing(_connect(f"file:{quote(path)}?mode={mode}", uri=True)) as file:
        for statement in statements:
            rows = file.execute(statement).fetchall()
    return rows


class _NewerError(Exception):
    """The file has a newer schema than this program knows."""


def _connect(path: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)


def is_locked(error: DatabaseError) -> bool:
    """Whether a statement failed because another process held a lock for longer than BUSY_TIMEOUT_SECONDS."""
    return _code(error) in LOCKED


def _code(error: DatabaseError) -> int:
    """Primary error code; -1 if the error does not come from SQLite itself."""
    extended = getattr(error, "sqlite_errorcode", None)
    return -1 if extended is None else extended & 0xFF


def _damaged(found: str) -> DatabaseError:
    error = sqlite3.DatabaseError(found)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _copied(source: sqlite3.Connection, target: sqlite3.Connection) -> bool:
    """Whether `source` could replace the whole content of `target`, in one transaction."""
    try:
        source.backup(target, progress=_do_not_wait)
    except DatabaseError:
        return False
    return True


def _do_not_wait(status: int, _remaining: int, _total: int) -> None:
    if status in LOCKED:
        raise sqlite3.OperationalError("another process is writing")


def _rescued(path: str, memory: sqlite3.Connection) -> bool:
    """Whether a file that cannot be opened for writing could be copied into memory, or does not exist.

    On a full disk the index of the WAL cannot be created, unless it is private to this process (EXCLUSIVE). On a
    read-only disk exclusive locking fails. Without a WAL, the file alone is complete (immutable).
    """
    if not os.path.exists(path):
        return True
    variants = [("", "EXCLUSIVE"), ("?mode=ro", "NORMAL")]
    if not os.path.exists(f"{path}-wal"):
        variants.append(("?immutable=1", "NORMAL"))
    for options, locking in variants:
        try:
            with closing(_connect(f"file:{quote(path)}{options}", uri=True)) as file:
                file.execute(f"PRAGMA locking_mode = {locking}")
                if _copied(file, memory):
                    return True
        except DatabaseError:
            continue
    return False
