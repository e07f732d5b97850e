from __future__ import annotations

import logging
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from monitor.base.private_files import MAX_ASIDE_COPIES
from monitor.base.sqlite import SPARE_BYTES, Database, DatabaseError, Row
from monitor.base.sqlite_files import Migration, Run
from monitor.base.state_problems import StateProblemKind
from tests.support import wait_until
from tests.support.databases import damage_page_of
from tests.support.filesystems import fill, mounted, run

TABLES: tuple[Migration, ...] = ("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)",)


@contextmanager
def opened(path: Path, *more: Migration) -> Iterator[Database]:
    with closing(Database(str(path), TABLES + more, retry=0.05)) as database:
        yield database


def note(database: Database, *texts: str) -> None:
    with database.transaction() as session:
        for text in texts:
            session.run("INSERT INTO notes (text) VALUES (?)", (text,))


def interrupted(database: Database) -> None:
    with database.transaction() as session:
        session.run("INSERT INTO notes (text) VALUES ('half')")
        raise KeyError


def notes(database: Database) -> list[str]:
    return [text for (text,) in database.select("SELECT text FROM notes ORDER BY id")]


def in_file(path: Path) -> list[str]:
    """Rows that another process reads from the file."""
    with opened(path) as another:
        assert another.trouble is None
        return notes(another)


def aside(path: Path, kind: str) -> list[str]:
    return [
        each.name
        for each in path.parent.glob(f"{path.name}.{kind}-*")
        if not each.name.endswith(("-wal", "-shm", ".txt"))
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "alerts.db"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=4m", "tmpfs"):
        yield tmp_path / "disk"


def test_what_is_written_is_there_the_next_time(path: Path) -> None:
    with opened(path) as database:
        note(database, "one", "two")
    assert in_file(path) == ["one", "two"]


def test_only_the_owner_can_read_it(path: Path) -> None:
    with opened(path) as database:
        note(database, "one")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == dict.fromkeys(["alerts.db", "alerts.db-wal", "alerts.db-shm"], 0o600)


def test_it_survives_the_end_of_the_machine_too(path: Path) -> None:
    with opened(path) as database:
        pragmas = {name: database.select(f"PRAGMA {name}") for name in ("journal_mode", "synchronous")}
    assert pragmas == {"journal_mode": [("wal",)], "synchronous": [(2,)]}


def test_a_transaction_that_fails_leaves_nothing_behind(path: Path) -> None:
    with opened(path) as database:
        note(database, "one")
        for odd in (None, ["a list"]):  # rejected by SQLite and by its binding
            with pytest.raises(DatabaseError):
                note(database, "two", odd)  # type: ignore[arg-type]  # wrong on purpose
        with pytest.raises(KeyError):
            interrupted(database)
        assert database.trouble is None
        note(database, "four")
        assert notes(database) == ["one", "four"]


def test_threads_do_not_get_into_each_others_transactions(path: Path) -> None:
    with opened(path) as database:

        def write() -> None:
            for _ in range(20):
                note(database, "a", "b")

        writers = [threading.Thread(target=write) for _ in range(4)]
        for each in writers:
            each.start()
        for each in writers:
            each.join()
        assert notes(database) == ["a", "b"] * 80


def test_older_tables_are_brought_up_to_date_and_keep_what_they_hold(path: Path) -> None:
    with opened(path) as database:
        note(database, "one")
    with opened(path, "ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'li'; CREATE TABLE x (y)") as database:
        assert database.select("SELECT text, author FROM notes") == [("one", "li")]
        assert database.select("PRAGMA user_version") == [(2,)]
        assert database.select("SELECT * FROM x") == []


def test_a_step_that_fails_leaves_the_tables_as_they_were(path: Path) -> None:
    with opened(path) as database:
        note(database, "one")
    with pytest.raises(DatabaseError):
        Database(str(path), (*TABLES, "CREATE TABLE x (y); CREATE TABLE notes (z)"))
    with opened(path) as database:
        assert database.select("SELECT name FROM sqlite_master WHERE type = 'table'") == [("notes",)]
        assert notes(database) == ["one"]


def test_a_step_can_change_rows(path: Path) -> None:
    def upper(run: Run) -> None:
        run("CREATE TABLE x (y)")
        for (text,) in run("SELECT text FROM notes"):
            run("UPDATE notes SET text = ? WHERE text = ?", (text.upper(), text))

    with opened(path) as database:
        note(database, "one", "two")
    with opened(path, upper) as database:
        assert notes(database) == ["ONE", "TWO"]
        assert database.select("PRAGMA user_version") == [(2,)]
    with opened(path, upper) as database:
        assert notes(database) == ["ONE", "TWO"]


def test_a_step_that_fails_changes_no_row(path: Path) -> None:
    def half(run: Run) -> None:
        run("DELETE FROM notes")
        run("CREATE TABLE notes (z)")

    with opened(path) as database:
        note(database, "one")
    with pytest.raises(DatabaseError):
        Database(str(path), (*TABLES, half))
    with opened(path) as database:
        assert notes(database) == ["one"]


@pytest.mark.parametrize(
    ("spoil", "kept"),
    [
        (lambda path: path.write_bytes(b"this is no database, it never was" * 400), []),
        (lambda path: path.write_bytes(path.read_bytes()[:4096] + os.urandom(9000)), []),
        (lambda path: damage_page_of(path, "notes", 20), ["0", "59"]),
    ],
    ids=["no database", "overwritten from the middle", "one page overwritten"],
)
def test_a_damaged_file_is_moved_aside_and_what_is_readable_is_kept(
    path: Path, spoil: Callable[[Path], None], kept: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with opened(path) as database:
        note(database, *(f"{number}" + " " * 1000 for number in range(60)))
    spoil(path)
    damaged = path.read_bytes()
    with opened(path) as database:
        assert database.problem is None
        assert {text.strip() for text in notes(database)} >= set(kept)
        assert bool(notes(database)) == bool(kept)
        note(database, "new")
    (copy,) = aside(path, "damaged")
    assert (path.parent / copy).read_bytes() == damaged
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert copy in caplog.text
    assert in_file(path)[-1] == "new"
    assert len(aside(path, "damaged")) == 1


def test_an_interrupted_recovery_is_finished_at_the_next_start(path: Path) -> None:
    with opened(path) as database:
        note(database, "one")
    path.rename(f"{path}.damaged-20261117T000000Z")  # killed right after this step
    (path.parent / f"{path.name}.damaged-20261117T000000Z").read_bytes()
    with opened(path) as database:
        assert notes(database) == ["one"]
        with database.transaction() as session:
            session.run("DELETE FROM notes")
    assert in_file(path) == []  # recovered once


def test_copies_of_the_same_second_have_different_names_and_are_never_deleted(path: Path) -> None:
    for number in range(MAX_ASIDE_COPIES + 3):
        path.parent.mkdir(exist_ok=True, mode=0o700)
        if number < MAX_ASIDE_COPIES:
            path.write_bytes(b"no database %d " % number * 1000)
        with opened(path) as database:
            note(database, "new")
            assert (database.problem is None) == (number < MAX_ASIDE_COPIES)
        if number >= MAX_ASIDE_COPIES - 1:
            path.write_bytes(b"no database at last" * 1000)
    assert len(aside(path, "damaged")) == MAX_ASIDE_COPIES
    assert path.read_bytes() == b"no database at last" * 1000


def test_a_file_of_a_newer_version_is_left_alone_and_what_is_understood_of_it_is_kept(path: Path) -> None:
    with opened(path, "ALTER TABLE notes ADD COLUMN author TEXT", "CREATE TABLE x (y)") as newer:
        note(newer, "one")
    before = path.read_bytes()
    with opened(path) as database:
        assert database.problem is not None
        assert database.problem.kind is StateProblemKind.NEWER
        assert "its schema version is 3; this version knows versions up to 1" in database.problem.why
        assert notes(database) == ["one"]
        note(database, "two")
        threading.Event().wait(0.2)  # long enough for several retries
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_newer_file_that_is_moved_away_is_replaced(path: Path) -> None:
    with opened(path, "CREATE TABLE x (y)") as newer:
        note(newer, "one")
    with opened(path) as database:
        path.rename(path.with_name("elsewhere"))
        wait_until(lambda: database.problem is None, 5, "it has moved back")
    assert in_file(path) == ["one"]


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "PRAGMA locking_mode = EXCLUSIVE"])
def test_a_file_that_another_process_has_locked_is_read_and_written_later(path: Path, lock: str) -> None:
    with opened(path) as database:
        note(database, "one")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(lock)
        other.execute("UPDATE notes SET text = text")
        with opened(path) as database:
            assert database.problem is not None
            assert "locked" in database.problem.why
            assert notes(database) == ["one"]
            note(database, "two")
            with suppress(DatabaseError):
                other.execute("COMMIT")
            other.close()
            wait_until(lambda: database.problem is None, 5, "it has moved back")
    assert in_file(path) == ["one", "two"]
    assert aside(path, "damaged") + aside(path, "unread") == []


def test_a_file_that_stays_locked_while_it_is_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.base.sqlite.BUSY_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr("monitor.base.sqlite.LOCKED_FOR_SECONDS", 0.0)
    with opened(path) as database, closing(sqlite3.connect(path, isolation_level=None)) as other:
        note(database, "one")
        other.execute("BEGIN IMMEDIATE")
        note(database, "two")
        assert database.problem is not None
        other.execute("ROLLBACK")
        wait_until(lambda: database.problem is None, 5, "it has moved back")
        assert notes(database) == ["one", "two"]


def test_a_file_that_is_damaged_while_it_is_used_is_moved_aside_and_the_transaction_is_not_lost(path: Path) -> None:
    with opened(path) as database:
        note(database, *("one" * 1000 for _ in range(2000)))  # more than the memory limit
    with opened(path) as database:
        size = path.stat().st_size
        os.truncate(path, 4096)
        os.truncate(path, size)
        with database.transaction() as session:
            session.run("INSERT INTO notes (id, text) VALUES (1000, 'a')")
            session.run("UPDATE notes SET text = 'b' WHERE text = 'a'")
        assert notes(database) == ["b"]
        assert database.trouble is None
    assert len(aside(path, "damaged")) == 1
    assert in_file(path) == ["b"]


def test_a_full_disk_loses_nothing(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    path = disk / "alerts.db"
    with opened(path) as database:
        note(database, "before")
        fill(disk)
        for number in range(40):
            note(database, f"{number}" * 1000)
        assert database.trouble is not None
        assert str(path) in database.trouble
        assert len(notes(database)) == 41
        (disk / "full").unlink()
        wait_until(lambda: database.trouble is None, 5, "it has moved back")
        note(database, "after")
        assert len(notes(database)) == 42
        mine = notes(database)
    assert in_file(path) == mine
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]


def test_it_does_not_take_the_last_room_of_a_disk(disk: Path) -> None:
    path = disk / "alerts.db"
    with opened(path) as database:
        note(database, "before")
        fill(disk)
        for _ in range(40):
            note(database, "x" * 1000)
        os.truncate(disk / "full", (disk / "full").stat().st_size - SPARE_BYTES)
        assert not threading.Event().wait(0.2)  # long enough for several retries
        assert database.trouble is not None
        (disk / "full").unlink()
        wait_until(lambda: database.trouble is None, 5, "it has moved back")


def killed_while_writing(path: Path) -> None:
    """Leave a file behind like kill -9: all data is still in the write-ahead log."""
    child = os.fork()
    if child == 0:
        note(Database(str(path), TABLES), "before")
        os._exit(0)
    os.waitpid(child, 0)
    assert path.with_name("alerts.db-wal").stat().st_size > 0


def fill_up(disk: Path) -> None:
    (disk / "alerts.db-shm").unlink()
    fill(disk)


def clear_up(disk: Path) -> None:
    (disk / "full").unlink()


def read_only(disk: Path) -> None:
    run("mount", "-o", "remount,ro", disk)


def writable(disk: Path) -> None:
    run("mount", "-o", "remount,rw", disk)


def closed_and_read_only(disk: Path) -> None:
    with opened(disk / "alerts.db"):
        pass
    assert not (disk / "alerts.db-wal").exists()
    read_only(disk)


@pytest.mark.parametrize(
    ("spoil", "mend"),
    [(fill_up, clear_up), (read_only, writable), (closed_and_read_only, writable)],
    ids=["full", "read-only", "read-only, closed before"],
)
def test_a_disk_that_cannot_be_written_at_the_start_is_read_and_written_later(
    disk: Path, spoil: Callable[[Path], None], mend: Callable[[Path], None]
) -> None:
    path = disk / "alerts.db"
    killed_while_writing(path)
    spoil(disk)
    with opened(path) as database:
        assert database.select("SELECT text FROM notes") == [("before",)]
        note(database, "meanwhile")
        assert database.trouble is not None
        mend(disk)
        wait_until(lambda: database.trouble is None, 5, "it has moved back")
    assert in_file(path) == ["before", "meanwhile"]


def test_a_disk_that_becomes_read_only_and_stays_so_until_the_end(disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = disk / "alerts.db"
    with opened(path) as database:
        note(database, "before")
    read_only(disk)
    with opened(path) as database:
        note(database, "lost")
    assert "changes since then are lost" in caplog.text
    writable(disk)
    assert in_file(path) == ["before"]


def test_what_could_not_be_written_is_written_at_the_end_if_that_is_possible_then(disk: Path) -> None:
    path = disk / "alerts.db"
    read_only(disk)
    with closing(Database(str(path), TABLES, retry=60.0)) as database:
        note(database, "meanwhile")
        writable(disk)
    assert in_file(path) == ["meanwhile"]


def test_a_file_that_nobody_could_read_is_kept(path: Path) -> None:
    """A directory in its place stands for an unreadable file, because root can read every file."""
    path.mkdir(parents=True)
    (path / "precious").touch()
    with opened(path) as database:
        note(database, "meanwhile")
        wait_until(lambda: database.trouble is None, 5, "it has moved back")
    assert in_file(path) == ["meanwhile"]
    (kept,) = aside(path, "unread")
    assert (path.parent / kept / "precious").exists()


def test_a_file_that_is_removed_comes_back_with_all_it_held(path: Path) -> None:
    with opened(path) as database:
        note(database, "one")
        for each in path.parent.iterdir():
            each.unlink()
        path.parent.rmdir()
        note(database, "two")
        assert notes(database) == ["one", "two"]
        wait_until(lambda: database.trouble is None, 5, "it has moved back")
    assert in_file(path) == ["one", "two"]


def test_somebody_who_writes_by_hand_is_waited_for_and_then_it_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.base.sqlite.BUSY_TIMEOUT_SECONDS", 0.1)
    with opened(path) as database, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match="locked"):
            note(database, "one")
        other.execute("ROLLBACK")
        note(database, "two")
        assert database.trouble is None
        rows: list[Row] = other.execute("SELECT text FROM notes").fetchall()
        assert rows == [("two",)]
