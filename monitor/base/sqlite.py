"""A SQLite database that stays usable through kill -9, a damaged, newer, locked or read-only file, and a full disk.

A committed transaction survives the end of the process and of the machine. A damaged file is moved aside, and what is
readable of it is copied into a new one. While the file cannot be written, the database continues in memory with a copy
of what could be read, and moves back as soon as the file is writable again. A file that a newer version wrote is left
as it is. Only one process may use a file: moving back replaces its content.
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

from monitor.base.private_files import aside_copies, make_private_directory, replace_file, set_aside
from monitor.base.sqlite_files import SIDE_FILES, Migration, NewerSchemaError, connect, open_migrated, rescue
from monitor.base.sqlite_salvage import reserve_sequences, salvage
from monitor.base.state_problems import NOTE_SUFFIX, StateProblem, StateProblemKind, read_note
from monitor.base.threads import spawn

log = logging.getLogger(__name__)

DatabaseError = sqlite3.Error
Row = tuple[Any, ...]
Values = Sequence[str | bytes | int | float | None]

BUSY_TIMEOUT_SECONDS = 5.0  # tolerated for an interactive sqlite3 session that holds a lock
OPEN_TIMEOUT_SECONDS = 1.0  # the same at the start, which must not take long
LOCKED_FOR_SECONDS = 30.0  # after which the database continues in memory
RETRY_SECONDS = 5.0  # between attempts to move back to the file
SPARE_BYTES = 1 << 20  # must stay free on the disk after moving back
MIN_ID_BESIDE_UNREAD = 1 << 40  # of rows written while the file cannot be read, so that both can be merged
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
UNWRITABLE = frozenset(
    {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}
)


class Database:
    """One database file, usable from any thread. `migrations` are scripts and functions, oldest first.

    `problem` says why the file is currently not written; None while it is.
    """

    def __init__(self, path: str, migrations: Sequence[Migration], retry: float = RETRY_SECONDS) -> None:
        self._path = path
        self._migrations = migrations
        self._retry = retry
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._identity: tuple[int, int] | None = None  # device and inode of the file; None while in memory
        self._unread = False  # an unreadable file lies at the path
        self._locked_since: float | None = None  # monotonic
        self.problem: StateProblem | None = None
        try:
            self._connection = self._open_file()
        except (NewerSchemaError, DatabaseError, OSError) as error:
            self._connection = self._retreat(error, None)

    @property
    def trouble(self) -> str | None:
        """Why the file is currently not written, in one sentence; None while it is."""
        return None if self.problem is None else f"{self._path} cannot be written: {self.problem.why}"

    @contextmanager
    def transaction(self) -> Iterator[DatabaseSession]:
        """A session whose statements take effect together, or not at all if the `with` block raises."""
        with self._lock:
            if self._identity and _identity(self._path) != self._identity:
                self._connection = self._retreat(FileNotFoundError("the file was removed"), self._connection)
            session = DatabaseSession(self)
            session.run("BEGIN IMMEDIATE")
            self._locked_since = None
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
        if self._identity is None or not (code in DAMAGED | UNWRITABLE or self._is_locked_for_long(code)):
            raise error
        self._roll_back()
        if code not in DAMAGED:
            self._connection = self._retreat(error, self._connection)
            return
        self._connection.close()
        try:
            self._connection = self._open_in_place_of_damaged(error)
        except (NewerSchemaError, DatabaseError, OSError) as another:
            self._connection = self._retreat(another, None)

    def _is_locked_for_long(self, code: int) -> bool:
        if code not in LOCKED:
            return False
        now = time.monotonic()
        self._locked_since = self._locked_since or now
        return now - self._locked_since >= LOCKED_FOR_SECONDS

    def _roll_back(self) -> None:
        with suppress(DatabaseError):  # a failure may have ended the transaction already
            self._connection.execute("ROLLBACK")

    def _open_file(self) -> sqlite3.Connection:
        """Connection to the migrated file, created if missing. Raise NewerSchemaError, DatabaseError or OSError."""
        try:
            return self._open_as_it_is("it was damaged")
        except DatabaseError as error:
            if _code(error) not in DAMAGED:
                raise
            return self._open_in_place_of_damaged(error)

    def _open_in_place_of_damaged(self, error: DatabaseError) -> sqlite3.Connection:
        """Connection to a new file with what is readable of the damaged one, which is moved aside."""
        aside = set_aside(self._path, "damaged", (*SIDE_FILES, ""))
        log.error("%s is damaged (%s); moved to %s, starting with a new file", self._path, error, aside)
        return self._open_as_it_is(str(error))

    def _open_as_it_is(self, damage: str) -> sqlite3.Connection:
        """Connection to the file. `damage` says what was wrong with a damaged one whose recovery has not finished."""
        connection = open_migrated(self._path, self._migrations, OPEN_TIMEOUT_SECONDS)
        try:
            connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_SECONDS * 1000)}")
            for aside in self._unrecovered():
                report = rescue(aside, connection, self._migrations)
                kept = "nothing of it could be read" if report is None else str(report)
                log.error("recovery of %s: %s", aside, kept)
                replace_file(aside + NOTE_SUFFIX, f"{damage}; {kept}\n".encode())
        except BaseException:
            connection.close()
            raise
        self._identity = _identity(self._path)
        return connection

    def _unrecovered(self) -> list[str]:
        """Damaged files without a note: their recovery has not begun, or a crash interrupted it."""
        directory, name = os.path.split(self._path)
        copies = [copy for copy in aside_copies(directory or ".") if copy.startswith(f"{name}.damaged-")]
        paths = [os.path.join(directory, copy) for copy in copies]
        return [path for path in paths if read_note(path) is None]

    def _retreat(self, error: Exception, source: sqlite3.Connection | None) -> sqlite3.Connection:
        """In-memory database with what can be read of the file; starts retrying to move back."""
        memory = connect(":memory:", 0.0)
        if source is None or not _copied(source, memory):
            self._unread = rescue(self._path, memory, self._migrations) is None
            for aside in self._unrecovered():
                rescue(aside, memory, self._migrations)
        if source is not None:
            source.close()
        if self._unread:
            reserve_sequences(memory, MIN_ID_BESIDE_UNREAD)
        self._identity = None
        newer = isinstance(error, NewerSchemaError)
        kind = StateProblemKind.NEWER if newer else StateProblemKind.UNWRITABLE
        self.problem = StateProblem(kind, self._path, str(error))
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
            self._need_room()
            file = self._reopen_file()
        except (NewerSchemaError, DatabaseError, OSError):
            return False
        try:
            if self._unread:
                salvage(file, self._connection)  # what was written meanwhile wins
            moved = _copied(self._connection, file)
        except DatabaseError:
            moved = False
        if not moved:
            self._identity = None
            file.close()
            return False
        self._connection.close()
        self._connection = file
        self._unread, self.problem = False, None
        log.info("%s is writable again; nothing was lost", self._path)
        return True

    def _reopen_file(self) -> sqlite3.Connection:
        """Connection to the file; what lies in its place is moved aside if it still cannot be read."""
        try:
            return self._open_file()
        except (DatabaseError, OSError) as error:
            locked = isinstance(error, DatabaseError) and _code(error) in LOCKED
            if not self._unread or locked or not os.path.exists(self._path):
                raise
            aside = set_aside(self._path, "unread", (*SIDE_FILES, ""))
            log.error("%s cannot be read (%s); moved to %s", self._path, error, aside)
            replace_file(aside + NOTE_SUFFIX, f"it could not be read: {error}\n".encode())
            return self._open_file()

    def _need_room(self) -> None:
        """Raise OSError unless the disk has room for the database twice: in the WAL and in the file."""
        pages, size = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        directory = os.path.dirname(self._path) or "."
        make_private_directory(directory)
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
    with closing(connect(f"file:{quote(path)}?mode={mode}", BUSY_TIMEOUT_SECONDS, uri=True)) as file:
        for statement in statements:
            rows = file.execute(statement).fetchall()
    return rows


def is_locked(error: DatabaseError) -> bool:
    """Whether a statement failed because another process held a lock for longer than BUSY_TIMEOUT_SECONDS."""
    return _code(error) in LOCKED


def _code(error: DatabaseError) -> int:
    """Primary error code; -1 if the error does not come from SQLite itself."""
    extended = getattr(error, "sqlite_errorcode", None)
    return -1 if extended is None else extended & 0xFF


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
