"""A SQLite file that is there whatever happens to it: kill -9, a damaged disk, a full one. Alone imports sqlite3.

What a transaction has written survives the end of the process and of the machine. A file that is damaged is moved
aside and a new one begun. While the file cannot be written, everything goes on in memory with a copy of what could be
read, and moves back as soon as the file can be written again. One process at a time uses a file: moving back
replaces what is in it.
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

log = logging.getLogger(__name__)

DatabaseError = sqlite3.Error
Row = tuple[Any, ...]
Values = Sequence[str | bytes | int | float | None]

BUSY_TIMEOUT = 5.0  # how long somebody who looks into the file by hand may be in the way
RETRY = 5.0  # how often it is tried to move back to the file
SPARE = 1 << 20  # how much more than itself has to fit on the disk before it moves back: do not be the last straw
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
UNWRITABLE = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
)


class Database:
    """One file, for use from any thread. `migrations` are the scripts that made its tables, the oldest first.

    `trouble` says in a sentence why the file is not written at the moment; None while all is well.
    """

    def __init__(self, path: str, migrations: Sequence[str], retry: float = RETRY) -> None:
        self._path = path
        self._migrations = migrations
        self._retry = retry
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._identity: tuple[int, int] | None = None  # of the file; None in memory
        self._unread = False  # whether a file lies there that nobody could read
        self.trouble: str | None = None
        try:
            self._connection = self._open_file()
        except (DatabaseError, OSError) as error:
            self._connection = self._retreat(str(error), None)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Give a session all of whose statements take effect together, or none if the `with` ends with an exception."""
        with self._lock:
            if self._identity and _identity(self._path) != self._identity:
                self._connection = self._retreat("the file was removed", self._connection)
            session = Session(self)
            session.run("BEGIN IMMEDIATE")
            try:
                yield session
                session.run("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def select(self, query: str, values: Values = ()) -> list[Row]:
        """Given a query that changes nothing, return its rows."""
        with self._lock:
            return Session(self).run(query, values)

    def close(self) -> None:
        """Close. What could not be written until now is tried once more."""
        self._closing.set()
        with self._lock:
            if self._identity is None and not self._move_back():
                log.error("what happened since then is forgotten: %s", self.trouble)
            self._connection.close()

    def execute(self, statement: str, values: Values) -> list[Row]:
        """Run one statement as it is. For sessions only."""
        return self._connection.execute(statement, values).fetchall()

    def give_way(self, error: DatabaseError) -> None:
        """Given why a statement failed, go on in a new file or in memory. Raise the error where neither would help."""
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
        """Return a connection to the file, which is made if need be, up to date. Raise DatabaseError or OSError."""
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
            raise _NewerError(f"it is of version {version}, and {len(self._migrations)} is the newest known here")
        for number, script in enumerate(self._migrations[version:], version + 1):
            try:
                connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT")
            except BaseException:
                with suppress(DatabaseError):
                    connection.execute("ROLLBACK")
                raise

    def _set_aside(self, kind: str, why: str) -> None:
        """Move the file and what belongs to it out of the way. Raise OSError."""
        aside = f"{self._path}.{kind}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        for suffix in ("-wal", "-shm", ""):
            with suppress(FileNotFoundError):
                os.replace(self._path + suffix, aside + suffix)
        log.error("%s cannot be used (%s); it is now %s, and a new one is begun", self._path, why, aside)

    def _retreat(self, why: str, source: sqlite3.Connection | None) -> sqlite3.Connection:
        """Return a database in memory with what can be read of the file, and keep trying to move back."""
        memory = _connect(":memory:")
        self._unread = not (_copied(source, memory) if source else _rescued(self._path, memory))
        self._migrate(memory)
        if source:
            source.close()
        self._identity = None
        self.trouble = f"{self._path} cannot be written: {why}"
        log.error("%s; going on in memory, a restart would forget what happens from now on", self.trouble)
        threading.Thread(target=self._keep_trying, name="database", daemon=True).start()
        return memory

    def _keep_trying(self) -> None:
        while not self._closing.wait(self._retry):
            with self._lock:
                if self._closing.is_set() or self._move_back():
                    return

    def _move_back(self) -> bool:
        """Return whether everything is in the file again."""
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
        log.info("%s can be written again, and nothing was lost", self._path)
        self.trouble = None
        return True

    def _need_room(self) -> None:
        """Raise OSError when the disk has no room for what is in memory, twice: in the log, and in the file."""
        pages, size = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        directory = os.path.dirname(self._path) or "."
        os.makedirs(directory, mode=0o700, exist_ok=True)
        room = os.statvfs(directory)
        if room.f_bavail * room.f_frsize < 2 * pages * size + SPARE:
            raise OSError(f"{directory} is full")


class Session:
    """The statements of one transaction. When the file fails under it they are repeated where it goes on."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._done: list[tuple[str, Values]] = []

    def run(self, statement: str, values: Values = ()) -> list[Row]:
        """Run a statement with its values, and return the rows that it gives. Raise DatabaseError."""
        try:
            rows = self._database.execute(statement, values)
        except DatabaseError as error:
            rows = self._repeat(error, statement, values)
        self._done.append((statement, values))
        return rows

    def _repeat(self, error: DatabaseError, statement: str, values: Values) -> list[Row]:
        self._database.give_way(error)
        try:
            for earlier in self._done:
                self._database.execute(*earlier)
            return self._database.execute(statement, values)
        except DatabaseError as another:  # the new place may fail too; from memory there is no third
            return self._repeat(another, statement, values)


def ask_file(path: str, mode: str, *statements: str) -> list[Row]:
    """Given a file that others may be using, and how it is opened (`ro`, `rwc`), return the last statement's rows.

    For who wants to know how a file fares without becoming its user. Raise DatabaseError.
    """
    rows: list[Row] = []
    with closing(_connect(f"file:{quote(path)}?mode={mode}", uri=True)) as file:
        for statement in statements:
            rows = file.execute(statement).fetchall()
    return rows


class _NewerError(Exception):
    """The file was written by a newer program."""


def _connect(path: str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, uri=uri)


def _code(error: DatabaseError) -> int:
    """Given an error, return its primary code; -1 for what does not come from SQLite itself."""
    extended = getattr(error, "sqlite_errorcode", None)
    return -1 if extended is None else extended & 0xFF


def _damaged(found: str) -> DatabaseError:
    error = sqlite3.DatabaseError(found)
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def _identity(path: str) -> tuple[int, int] | None:
    """Return which file lies at a path; None if none does."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _copied(source: sqlite3.Connection, target: sqlite3.Connection) -> bool:
    """Return whether all of one database could be put in the place of all of another, in one transaction."""
    try:
        source.backup(target, progress=_do_not_wait)
    except DatabaseError:
        return False
    return True


def _do_not_wait(status: int, _remaining: int, _total: int) -> None:
    if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise sqlite3.OperationalError("somebody else is writing")


def _rescued(path: str, memory: sqlite3.Connection) -> bool:
    """Return whether a file that cannot be opened to write could be read, or is not there at all.

    On a full disk the index of the log cannot be made, unless it is kept in this process alone (exclusive). On a
    read-only one nobody can be excluded. Where there is no log, the file is all there is (immutable).
    """
    if not os.path.exists(path):
        return True
    ways = [("", "EXCLUSIVE"), ("?mode=ro", "NORMAL")]
    if not os.path.exists(f"{path}-wal"):
        ways.append(("?immutable=1", "NORMAL"))
    for options, locking in ways:
        try:
            with closing(_connect(f"file:{quote(path)}{options}", uri=True)) as file:
                file.execute(f"PRAGMA locking_mode = {locking}")
                if _copied(file, memory):
                    return True
        except DatabaseError:
            continue
    return False
