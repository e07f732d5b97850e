from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from monitor.base.sqlite_files import rescue
from monitor.base.sqlite_salvage import LOST_SEQUENCE_GAP_ROWS, salvage
from tests.support.databases import damage_page_of, pages_of

ROWS = 3000
SCHEMA = """
CREATE TABLE small (id TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE history (place INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
CREATE TABLE sums (hour INTEGER NOT NULL, user TEXT NOT NULL, n REAL, PRIMARY KEY (hour, user)) WITHOUT ROWID;
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.db"
    with closing(sqlite3.connect(path)) as file:
        file.executescript(f"{SCHEMA}; PRAGMA user_version = 1")
        file.executemany("INSERT INTO small VALUES (?, ?)", [(f"s{n}", b"x" * 100) for n in range(20)])
        file.executemany("INSERT INTO history (body) VALUES (?)", [(f"{n} {'y' * 150}",) for n in range(ROWS)])
        file.executemany("INSERT INTO sums VALUES (?, ?, ?)", [(n, f"user-{n:050}", 1.0) for n in range(ROWS)])
        file.execute("DELETE FROM history WHERE place > ?", (ROWS - 5,))
        file.commit()
    return path


def kept(path: Path, migrations: tuple[str, ...] = (SCHEMA,)) -> tuple[dict[str, int], list[str], sqlite3.Connection]:
    target = sqlite3.connect(":memory:", isolation_level=None)
    report = rescue(str(path), target, migrations)
    assert report is not None
    return report.rows, report.incomplete, target


def test_a_sound_file_is_copied_completely(path: Path) -> None:
    rows, incomplete, target = kept(path)
    assert (rows, incomplete) == ({"small": 20, "history": ROWS - 5, "sums": ROWS}, [])
    assert target.execute("SELECT seq FROM sqlite_sequence").fetchall() == [(ROWS,)]


@pytest.mark.parametrize("places", [[0], [50], [99], [30, 31, 60], [10, 11, 12, 99], [0, 99]])
def test_unreadable_pages_cost_only_their_own_rows(path: Path, places: list[int]) -> None:
    leaves = len(pages_of(path, "history"))
    damage_page_of(path, "history", *places)
    rows, incomplete, _ = kept(path)
    assert incomplete == ["history"]
    assert (rows["small"], rows["sums"]) == (20, ROWS)
    on_a_page = ROWS // leaves + 2
    assert rows["history"] >= ROWS - 5 - len(places) * on_a_page


def test_a_table_without_rowids_is_read_from_both_ends(path: Path) -> None:
    leaves = len(pages_of(path, "sums"))
    damage_page_of(path, "sums", 40)
    rows, incomplete, _ = kept(path)
    assert incomplete == ["sums"]
    assert rows["sums"] >= ROWS - 2 * (ROWS // leaves + 2)
    assert rows["history"] == ROWS - 5


def test_ids_are_not_used_again_even_if_the_last_one_is_unknown(path: Path) -> None:
    damage_page_of(path, "sqlite_sequence", 0)
    _, _, target = kept(path)
    assert target.execute("SELECT seq FROM sqlite_sequence").fetchall() == [(ROWS - 5 + LOST_SEQUENCE_GAP_ROWS,)]


def test_an_older_file_is_migrated_after_it_was_copied(path: Path) -> None:
    step = "ALTER TABLE small ADD COLUMN size INTEGER; UPDATE small SET size = length(body); CREATE TABLE another (x)"
    damage_page_of(path, "history", 50)
    rows, _, target = kept(path, (SCHEMA, step))
    assert rows["small"] == 20
    assert target.execute("SELECT DISTINCT size FROM small").fetchall() == [(100,)]


def test_rows_that_are_there_win_and_values_of_the_wrong_type_are_left_out(path: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(":memory:", isolation_level=None)) as target:
        source.executescript("DROP TABLE history; CREATE TABLE history (place TEXT, body TEXT)")
        source.execute("INSERT INTO history VALUES ('no number', 'x'), ('7', NULL), ('8', 'good')")
        source.execute("INSERT INTO small VALUES ('odd', CAST(x'ff' AS TEXT))")
        target.executescript(SCHEMA)
        target.execute("INSERT INTO small VALUES ('s1', 'mine')")
        salvage(source, target)
        assert target.execute("SELECT * FROM history").fetchall() == [(8, "good")]
        assert target.execute("SELECT body FROM small WHERE id IN ('s1', 'odd') ORDER BY id").fetchall() == [
            ("\N{REPLACEMENT CHARACTER}",),
            ("mine",),
        ]


def test_the_time_is_limited(path: Path) -> None:
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(":memory:", isolation_level=None)) as target:
        target.executescript(SCHEMA)
        report = salvage(source, target, seconds=0.0)
    assert report.incomplete == ["small", "history", "sums"]
