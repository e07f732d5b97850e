"""The usage store: sums by hour, retention, and the file after kill -9."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from monitor.report.buckets import DAY, FIGURES, HOUR, KEEP_DAYS, Bucket, By
from monitor.report.disk_use import DiskUse, DiskUseKind
from monitor.report.store import FILE, KEEP_HOURS_DAYS, MIGRATIONS, UsageStore, daily_before, period_start
from tests.report.builders import figures
from tests.support import wait_until

NOW = 1_763_260_000.0
A100, H20 = "NVIDIA A100-SXM4-80GB", "NVIDIA H20"
H0 = int(NOW // HOUR) * HOUR
D0 = int(NOW // DAY) * DAY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[UsageStore]:
    made = UsageStore(str(tmp_path / FILE))
    yield made
    made.close()


def bucket(
    hour: int = H0, user: str | None = "zhang", node: str = "n1", model: str | None = None, **values: float
) -> Bucket:
    return Bucket(hour=hour, node=node, user=user, queue="nlp" if user else None, model=model, **values)


def allocated(
    store: UsageStore, since: float = 0.0, until: float = NOW + DAY, by: By = "user"
) -> dict[str | None, float]:
    return {getattr(bucket, by): bucket.allocated for bucket in store.buckets(since, until, by)}


def test_the_older_half_is_given_up_and_the_last_hour_never(store: UsageStore) -> None:
    store.add([bucket(H0 - number * HOUR, allocated=1.0) for number in range(4)], {H0 - 3 * HOUR: 60.0, H0: 60.0})
    assert store.shrink()
    assert allocated(store) == {"zhang": 2.0}
    assert store.watched(0.0, NOW + DAY) == 60.0
    assert store.shrink()
    assert not store.shrink()
    assert allocated(store) == {"zhang": 1.0}


def test_long_names_are_cut_and_stay_apart(store: UsageStore) -> None:
    store.add([bucket(user="u" * 9_000 + end, allocated=1.0) for end in ("a", "b", "b")], {})
    assert sorted((len(name or ""), seconds) for name, seconds in allocated(store).items()) == [(256, 1.0), (256, 2.0)]


def test_what_is_added_to_an_hour_is_added_up(store: UsageStore) -> None:
    every: dict[str, Any] = {name: float(number) for number, name in enumerate(FIGURES, 1)}
    store.add([bucket(**every), bucket(user="li", allocated=5.0)], {H0: 30.0})
    store.add([bucket(**every), bucket(user=None, free=7.0), bucket(H0 + HOUR, node="n2", allocated=100.0)], {H0: 5.5})
    (zhang,) = [row for row in store.buckets(H0, H0 + HOUR, "user") if row.user == "zhang"]
    assert figures(zhang, FIGURES) == {name: 2 * value for name, value in every.items()}
    assert allocated(store) == {"zhang": 102.0, "li": 5.0, None: 0.0}
    assert allocated(store, by="queue") == {"nlp": 107.0, None: 0.0}
    assert allocated(store, by="node") == {"n1": 7.0, "n2": 100.0}
    assert allocated(store, until=H0 + HOUR) == {"zhang": 2.0, "li": 5.0, None: 0.0}
    assert allocated(store, since=H0 + HOUR) == {"zhang": 100.0}
    assert (store.watched(H0, H0 + 1), store.watched(H0 + 1, NOW + DAY)) == (35.5, 0.0)


def test_hours_have_the_sums_of_all_gpus(store: UsageStore) -> None:
    store.add([bucket(allocated=5.0), bucket(user="li", node="n2", allocated=1.0), bucket(user=None, free=7.0)], {})
    store.add([bucket(H0 + 2 * HOUR, zombie=4.0)], {})
    found = [(each.hour, each.allocated, each.free, each.zombie) for each in store.hours(H0, H0 + 3 * HOUR)]
    assert found == [(H0, 6.0, 7.0, 0.0), (H0 + 2 * HOUR, 0.0, 0.0, 4.0)]
    assert store.hours(H0 + HOUR, H0 + 2 * HOUR) == ()


def test_records_of_an_older_version_are_taken_over(tmp_path: Path) -> None:
    path = tmp_path / FILE
    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(MIGRATIONS[0])
        rows = [(H0, "n1", "zhang", "nlp"), (H0, "n2", "zhang", "cv"), (H0 + HOUR, "n1", "", "")]
        marks = ", ".join("?" * (4 + len(FIGURES)))
        file.executemany(f"INSERT INTO buckets VALUES ({marks})", [(*row, *[1.0] * len(FIGURES)) for row in rows])
        file.execute("PRAGMA user_version = 1")
    store = UsageStore(str(path))
    assert allocated(store) == {"zhang": 2.0, None: 1.0}
    assert allocated(store, by="queue") == {"nlp": 1.0, "cv": 1.0, None: 1.0}
    assert allocated(store, by="node") == {"n1": 2.0, "n2": 1.0}
    assert [each.allocated for each in store.hours(H0, NOW + DAY)] == [2.0, 1.0]
    store.close()


def test_what_was_recorded_before_models_were_has_none(tmp_path: Path) -> None:
    path = tmp_path / FILE
    with closing(sqlite3.connect(path)) as file, file:
        file.executescript(MIGRATIONS[0] + MIGRATIONS[1])
        rows = [("user", H0, "zhang"), ("user", H0, "li"), ("queue", H0, "nlp")]
        marks = ", ".join("?" * (3 + len(FIGURES)))
        file.executemany(f"INSERT INTO usage VALUES ({marks})", [(*row, *[1.0] * len(FIGURES)) for row in rows])
        file.execute("PRAGMA user_version = 2")
    store = UsageStore(str(path))
    store.add([bucket(allocated=2.0, model=A100), bucket(allocated=4.0, model=A100, share=0.5)], {})
    found = {(each.user, each.model, each.share): each.allocated for each in store.buckets(0.0, NOW + DAY, "user")}
    store.close()
    assert found == {
        ("zhang", None, 1.0): 1.0, ("li", None, 1.0): 1.0, ("zhang", A100, 1.0): 2.0, ("zhang", A100, 0.5): 4.0,
    }  # fmt: skip


def priced(store: UsageStore, by: By) -> dict[tuple[str | None, str | None, float], float]:
    return {
        (getattr(each, by), each.model, each.share): each.allocated for each in store.buckets(0.0, NOW + 2 * DAY, by)
    }


def test_sums_are_by_model_and_those_of_an_hour_of_all_models(store: UsageStore) -> None:
    store.add([bucket(model=A100, allocated=1.0), bucket(model=A100, share=0.5, allocated=2.0)], {})
    store.add([bucket(model=H20, allocated=4.0), bucket(H0 + HOUR, model=A100, allocated=8.0)], {})
    assert priced(store, "user") == {("zhang", A100, 1.0): 9.0, ("zhang", A100, 0.5): 2.0, ("zhang", H20, 1.0): 4.0}
    assert priced(store, "node") == {("n1", A100, 1.0): 9.0, ("n1", A100, 0.5): 2.0, ("n1", H20, 1.0): 4.0}
    assert [each.allocated for each in store.hours(H0, H0 + 2 * HOUR)] == [7.0, 8.0]
    hourly = {(each.model, each.share, each.allocated) for each in store.hourly(H0, H0 + HOUR, "queue", {"nlp"})}
    assert hourly == {(A100, 1.0, 1.0), (A100, 0.5, 2.0), (H20, 1.0, 4.0)}


def stored_models(path: Path) -> list[tuple[str, float]]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute("SELECT model, share FROM models WHERE id > 0 ORDER BY model, share").fetchall()


def test_a_model_is_stored_once_and_forgotten_with_its_last_hour(tmp_path: Path, store: UsageStore) -> None:
    for _ in range(2):
        store.add([bucket(H0 - (KEEP_DAYS + 2) * DAY, model=H20, allocated=1.0), bucket(model=A100, share=0.5)], {})
    assert stored_models(tmp_path / FILE) == [(A100, 0.5), (H20, 1.0)]
    store.prune(NOW)
    assert stored_models(tmp_path / FILE) == [(A100, 0.5)]
    store.add([bucket(H0 + HOUR, model=H20)], {})
    assert store.shrink()
    assert stored_models(tmp_path / FILE) == [(H20, 1.0)]


def test_hours_whose_model_a_damaged_file_lost_still_count(tmp_path: Path, store: UsageStore) -> None:
    store.add([bucket(model=A100, allocated=1.0)], {})
    with closing(sqlite3.connect(tmp_path / FILE)) as file, file:
        file.execute("DELETE FROM models")
    store.add([bucket(H0 + DAY, model=A100, allocated=2.0), bucket(H0 + DAY, user="li", allocated=4.0)], {})
    assert priced(store, "user") == {("zhang", None, 1.0): 1.0, ("zhang", A100, 1.0): 2.0, ("li", None, 1.0): 4.0}
    assert [each.allocated for each in store.hours(H0, H0 + 2 * DAY)] == [1.0, 6.0]


def test_it_outlives_the_process(tmp_path: Path) -> None:
    path = str(tmp_path / "state" / FILE)
    first = UsageStore(path)
    first.add([bucket(allocated=5.0)], {})
    first.close()
    again = UsageStore(path)
    assert allocated(again) == {"zhang": 5.0}
    again.close()


KILLED = """
import sys
from monitor.report.buckets import Bucket
from monitor.report.store import UsageStore
store, number = UsageStore(sys.argv[1]), 0
while True:
    number += 1
    store.add([Bucket(hour=0, node="n1", user=str(user), allocated=1.0) for user in range(50)], {0: 1.0})
    print(number, flush=True)
"""


def test_a_kill_loses_nothing_that_was_written_and_leaves_nothing_half(tmp_path: Path) -> None:
    path = str(tmp_path / FILE)
    process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        done = [int(process.stdout.readline()) for _ in range(20)][-1]
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    store = UsageStore(path)
    times = set(allocated(store).values())
    assert len(times) == 1
    assert times.pop() == store.watched(0, 1) >= done
    store.close()


def test_old_hours_become_days_and_very_old_ones_are_forgotten(tmp_path: Path, store: UsageStore) -> None:
    long_ago, before, after = D0 - (KEEP_DAYS + 1) * DAY, daily_before(NOW) - DAY, daily_before(NOW)
    for start in (long_ago, before, after):
        store.add([bucket(start + n * HOUR, model=A100, allocated=1.0, idle=0.5) for n in range(24)], {start: 3600.0})
    store.put_disks([DiskUse(day=long_ago, kind=DiskUseKind.IMAGES, node="n1", bytes=1)])
    for _ in range(2):
        store.prune(NOW)
    with sqlite3.connect(tmp_path / FILE) as file:
        columns = "hour, model, allocated, idle"
        query = f"SELECT {columns} FROM usage JOIN models ON id = model_id WHERE dimension = 'user' ORDER BY hour"
        rows = file.execute(query).fetchall()
        assert file.execute("SELECT COUNT(*) FROM disks").fetchone() == (0,)
    file.close()
    assert rows == [(before, A100, 24.0, 12.0), *((after + n * HOUR, A100, 1.0, 0.5) for n in range(24))]
    assert store.watched(0, NOW) == 7200.0


PERIODS: list[tuple[str, float, float]] = [
    ("an hour", NOW - 10 * DAY - 5, H0 - 10 * DAY),
    ("on the hour", float(H0), float(H0)),
    ("a day where hours are gone", NOW - (KEEP_HOURS_DAYS + 2) * DAY, D0 - (KEEP_HOURS_DAYS + 2) * DAY),
]


@pytest.mark.parametrize(("name", "since", "expect"), PERIODS, ids=[row[0] for row in PERIODS])
def test_a_stretch_begins_with_a_whole_hour_or_day(name: str, since: float, expect: float) -> None:
    assert period_start(since, NOW) == expect


def use(kind: DiskUseKind, size: int, user: str | None = None, node: str = "n1", ago: int = 0) -> DiskUse:
    return DiskUse(day=D0 - ago * DAY, kind=kind, node=node, user=user, bytes=size)


def test_disks_are_as_last_known(store: UsageStore) -> None:
    store.put_disks(
        [
            use(DiskUseKind.WRITABLE, 1, "li"),
            use(DiskUseKind.WRITABLE, 2, "zhang"),
            use(DiskUseKind.WRITABLE, 9, "li", "n2"),
        ]
    )
    store.put_disks([use(DiskUseKind.WRITABLE, 3, "zhang")])  # replaces the rows of the same day and node
    store.put_disks(
        [
            use(DiskUseKind.IMAGES, 50, ago=1),
            use(DiskUseKind.IMAGES, 40, ago=2),
            use(DiskUseKind.IMAGES, 7, node="gone", ago=2),
        ]
    )
    store.put_disks([use(DiskUseKind.DATASETS, 100, "li", ago=20), use(DiskUseKind.DATASETS, 5, "li", "old", ago=40)])
    by_node = [(row.kind.value, row.node, row.bytes) for row in store.disks(NOW, "node")]
    assert by_node == [("datasets", "n1", 100), ("images", "n1", 50), ("writable", "n1", 3), ("writable", "n2", 9)]
    by_user = [(row.kind.value, row.user, row.bytes) for row in store.disks(NOW, "user")]
    assert by_user == [("datasets", "li", 100), ("images", None, 50), ("writable", "li", 9), ("writable", "zhang", 3)]
    by_queue = [(row.kind.value, row.bytes) for row in store.disks(NOW, "queue")]
    assert by_queue == [("datasets", 100), ("images", 50), ("writable", 12)]


def test_while_the_file_cannot_be_written_it_goes_on(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    store = UsageStore(str(blocked / FILE))  # not a directory
    store.add([bucket(allocated=5.0)], {})
    assert allocated(store) == {"zhang": 5.0}
    blocked.unlink()
    store.close()
    wait_until(lambda: (blocked / FILE).exists(), 60, "the file exists")
    again = UsageStore(str(blocked / FILE))
    assert allocated(again) == {"zhang": 5.0}
    again.close()
