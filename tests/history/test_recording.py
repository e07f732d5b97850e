"""Recording: minutes, hours, days and a week, across restarts, steps of the clock and failures."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from monitor.base.sqlite import DatabaseError
from monitor.history.model import HistoryMetric
from monitor.history.open_hour import OpenHour
from monitor.history.store import MAX_FINE_HOURS, MAX_HOURS
from tests.history.builders import DAY, HOUR, MINUTE, START, Rig, busy
from tests.support import wait_until


def test_a_minute_has_the_mean_and_the_maximum_and_a_gap_is_a_gap(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.see(busy(0.2))
    rig.see(busy(0.4), after=15)
    rig.see(busy(0.5), after=MINUTE)
    rig.see(busy(None), after=MINUTE)
    rig.see(after=MINUTE)
    rig.see(busy(1.0), after=2 * MINUTE)
    found = rig.read()
    assert found.points(HistoryMetric.UTILIZATION) == (
        (START, 0.3), (START + MINUTE, 0.5), (START + 2 * MINUTE, None), (START + 3 * MINUTE, None),
        (START + 4 * MINUTE, None), (START + 5 * MINUTE, 1.0),
    )  # fmt: skip
    (series,) = found.series
    assert max(value for value in series.max if value is not None) == 1.0
    assert series.max[-6] == 0.4
    rig.recorder.close()


def test_hours_and_days_are_read_as_they_were_recorded(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for hour in range(30):
        rig.run(HOUR, (hour % 10) / 10)
    assert {value for _, value in rig.loads(HOUR)[:-2]} == {0.9}
    day = rig.loads(DAY)
    assert rig.read(DAY).step_seconds == 2 * MINUTE
    assert len(day) >= DAY // (2 * MINUTE) - 1
    for at, value in day:
        if (at - START) % HOUR:  # the first minute of an hour has the value recorded at the end of the one before
            assert value == (at - START) // HOUR % 10 / 10
    week = rig.loads(7 * DAY)
    assert rig.read(7 * DAY).step_seconds == 600
    assert week[0][0] == START
    assert len(week) == 30 * 6 + 1
    rig.recorder.close()


def test_a_week_is_kept_of_it_a_day_by_the_minute(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    for _ in range(9 * 24):
        rig.see(busy(0.5), after=HOUR / 2)
        rig.see(busy(0.7), after=HOUR / 2)
    with closing(sqlite3.connect(rig.path)) as file:
        count = "SELECT COUNT(*) FROM "
        assert file.execute(f"{count} hours").fetchone()[0] == MAX_HOURS
        assert file.execute(f"{count} hours WHERE fine").fetchone()[0] == MAX_FINE_HOURS
        assert file.execute(f"{count} (SELECT DISTINCT hour FROM blocks)").fetchone()[0] == MAX_HOURS
        fine = "(SELECT DISTINCT hour FROM blocks WHERE fine IS NOT NULL)"
        assert file.execute(f"{count} {fine}").fetchone()[0] == MAX_FINE_HOURS
        assert file.execute(f"{count} minutes").fetchone()[0] <= 2
        assert file.execute(f"{count} layouts").fetchone()[0] < 10
    week = rig.loads(7 * DAY)
    assert week[0][0] <= rig.clock.time() - 7 * DAY + 2 * HOUR
    rig.recorder.close()


def test_a_restart_continues_the_hour(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.run(10 * MINUTE, 0.5)
    rig.recorder.close()
    rig.start()
    rig.run(10 * MINUTE, 0.7)
    assert [value for _, value in rig.loads()] == pytest.approx([0.5] * 10 + [0.7] * 10)
    rig.recorder.close()


def test_an_hour_that_ended_while_nothing_ran_is_stored(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.run(30 * MINUTE, 0.5)
    rig.recorder.close()
    rig.clock.advance(3 * HOUR)
    rig.start()
    rig.run(10 * MINUTE, 0.7)
    values = [value for _, value in rig.loads(6 * HOUR)]
    assert values == pytest.approx([0.5] * 30 + [0.7] * 10)
    with closing(sqlite3.connect(rig.path)) as file:
        assert file.execute("SELECT hour FROM hours").fetchall() == [(int(START),)]
    rig.recorder.close()


KILLED = """
import sys
from pathlib import Path
from tests.history.builders import Rig, busy

rig = Rig(Path(sys.argv[1]))
for number in range(90):
    rig.see(busy(0.5), busy(0.2, index=1 + number // 10), after=10)
print("recorded", flush=True)
sys.stdin.read()
"""


def test_kill_9_loses_at_most_a_minute(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        wait_until(lambda: process.stdout is not None and process.stdout.readline() == "recorded\n", 60, "it recorded")
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    rig = Rig(tmp_path, START + 900)
    known = rig.loads()
    assert known[-1][0] >= START + 900 - 2 * MINUTE  # the minute before the last, which has just begun
    assert {value for _, value in known} == {0.5}
    late = rig.read(name="n1/9").points(HistoryMetric.UTILIZATION)
    assert {value for _, value in late if value is not None} == {0.2}
    rig.recorder.close()


def test_a_kill_while_an_hour_is_stored_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.history.store.GROUPS_PER_TRANSACTION_COUNT", 1)
    rig = Rig(tmp_path)
    blocks = OpenHour.blocks

    def broken(hour: OpenHour):  # type: ignore[no-untyped-def]
        yield next(iter(blocks(hour)))
        raise DatabaseError("killed")

    for _ in range(59):
        rig.see(*(busy(index / 10, index=index, node=f"n{index}") for index in range(5)), after=MINUTE)
    monkeypatch.setattr(OpenHour, "blocks", broken)
    rig.see(after=2 * MINUTE)
    rig.recorder.store.close()
    monkeypatch.setattr(OpenHour, "blocks", blocks)
    rig.start()
    rig.see(after=MINUTE)
    for index in range(5):
        found = rig.read(6 * HOUR, name=f"n{index}/{index}").points(HistoryMetric.UTILIZATION)
        assert [value for _, value in found if value is not None] == pytest.approx([index / 10] * 59)
    rig.recorder.close()


def test_a_clock_that_is_set_back_into_an_hour_keeps_both(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.run(70 * MINUTE, 0.5)
    rig.clock.set(-30 * MINUTE)  # into the hour that has been stored
    rig.run(5 * MINUTE, 0.9)
    rig.clock.set(25 * MINUTE)
    rig.run(5 * MINUTE, 0.7)
    values = dict(rig.loads(6 * HOUR))
    assert values[START + 20 * MINUTE] == 0.5
    assert values[START + 43 * MINUTE] == 0.9
    assert values[START + 50 * MINUTE] == 0.5
    assert values[START + 74 * MINUTE] == 0.7
    rig.recorder.close()


def test_a_clock_that_is_set_back_within_the_hour_mixes_nothing_up(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.see(busy(0.5), after=40 * MINUTE)
    rig.see(busy(0.5), busy(0.1, index=1), after=MINUTE)
    rig.clock.set(-20 * MINUTE)
    rig.see(busy(0.5), busy(0.1, index=1), busy(0.2, index=2), after=MINUTE)
    rig.recorder.close()
    rig.start()
    loads = [{v for _, v in rig.read(name=f"n1/{n}").points(HistoryMetric.UTILIZATION)} - {None} for n in range(3)]
    assert loads == [{0.5}, {0.1}, {0.2}]
    rig.recorder.close()


def test_a_clock_that_is_wrong_for_a_moment_deletes_nothing(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.run(3 * HOUR, 0.5)
    for step in (400 * DAY, -800 * DAY):
        rig.clock.set(step)
        rig.run(2 * HOUR, 0.9)
    rig.clock.set(400 * DAY)
    rig.run(10 * MINUTE, 0.5)
    found = rig.loads(DAY)
    assert {value for _, value in found} == {0.5}
    assert found[0][0] < START + 2 * MINUTE
    rig.recorder.close()


def test_what_cannot_be_written_is_kept_and_written_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(tmp_path)
    rig.run(10 * MINUTE, 0.5)

    def fail(*_: object) -> None:
        raise DatabaseError("disk I/O error")

    with monkeypatch.context() as broken:
        for name in ("put_minutes", "close_hour"):
            broken.setattr(rig.recorder.store, name, fail)
        for _ in range(3):
            rig.see(busy(0.5), busy(0.3, index=1), after=MINUTE)
        rig.run(HOUR, 0.5)
    rig.run(MINUTE, 0.5)
    rig.recorder.close()
    rig.start()
    assert len(rig.loads(6 * HOUR)) == 74
    assert [value for _, value in rig.read(6 * HOUR, name="n1/1").points(HistoryMetric.UTILIZATION)[:3]] == [0.3] * 3
    rig.recorder.close()


def test_a_damaged_block_and_journal_lose_only_themselves(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.run(150 * MINUTE, 0.5)
    rig.recorder.close()
    with closing(sqlite3.connect(rig.path)) as file:
        file.execute("UPDATE blocks SET fine = x'00', coarse = x'00' WHERE hour = ?", (int(START),))
        file.execute("UPDATE minutes SET body = x'00' WHERE at = (SELECT MIN(at) + 300 FROM minutes)")
        file.commit()
    rig.start()
    minutes = [START + HOUR + MINUTE * number for number in range(91)]
    minutes.remove(START + 2 * HOUR + 300)
    assert [at for at, _ in rig.loads(6 * HOUR)] == minutes
    rig.recorder.close()


def test_shrinking_removes_the_older_half(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.run(10 * HOUR, 0.5, every=HOUR / 2)
    store = rig.recorder.store
    assert store.shrink()
    assert min(at for at, _ in rig.loads(DAY)) >= START + 4 * HOUR
    while store.shrink():
        pass
    rig.run(HOUR, 0.5)
    rig.recorder.close()


def test_without_room_for_more_series_the_first_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.history.open_hour.MAX_SERIES_COUNT", 60)
    rig = Rig(tmp_path)
    rig.see(*(busy(0.5, index=index) for index in range(100)))
    known = [index for index in range(100) if rig.read(name=f"n1/{index}").series]
    assert known == list(range(14))  # four each, after those of the cluster
    rig.recorder.close()
