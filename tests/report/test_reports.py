"""Reports on demand: until this moment, without a write, and the same before and after what was recorded is saved."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

from monitor.report.buckets import DAY, HOUR, Bucket, By
from monitor.report.model import Report
from monitor.report.reports import ReportService
from monitor.report.store import FILE, UsageStore
from tests.report.builders import HOUR0, view
from tests.report.test_recorder import AGENT, BUSY, CYCLE, Rig

WEEK = 7.0 * DAY


class Scene(Rig):
    """A daemon whose only GPU is held by zhang."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.reports = ReportService(self.recorder, lambda _since: (), now=self.clock.time)
        self.recorder.record()

    def report(self, by: By = "user", seconds: float = WEEK) -> Report:
        return self.reports.report(seconds, by)

    def hours(self, by: By = "user", seconds: float = WEEK) -> dict[str | None, float]:
        return {row.name: round(row.allocated_hours * HOUR, 6) for row in self.report(by, seconds).rows}


def test_it_covers_everything_until_now_and_writes_nothing(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.pass_time(50)
    scene.clock.advance(5)
    assert scene.hours() == {"zhang": 55.0}
    assert scene.report().watched_seconds == 55.0
    assert scene.allocated() == 0
    scene.store.close()


@pytest.mark.parametrize("by", ["user", "queue", "node"])
def test_saving_changes_no_figure(tmp_path: Path, by: By) -> None:
    scene = Scene(tmp_path)
    scene.store.add([Bucket(hour=int(HOUR0) - HOUR, node="n1", user="zhang", queue="nlp", allocated=7.0)], {})
    scene.pass_time(HOUR + 200)  # into the next hour
    before = scene.report(by)
    scene.recorder.save()
    assert scene.report(by) == before
    assert before.total.allocated_hours == pytest.approx((7 + HOUR + 200) / HOUR)
    assert [hour.at - HOUR0 for hour in before.by_hour] == [-HOUR, 0, HOUR]
    scene.store.close()


def test_an_hour_that_ended_while_reports_were_read_is_complete(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for _ in range(4):
        scene.pass_time(HOUR / 2)
        scene.report()
        scene.recorder.save()
        scene.pass_time(CYCLE)
    assert scene.hours() == {"zhang": 2.0 * HOUR + 4 * CYCLE}
    scene.store.close()


def test_each_period_and_dimension_has_its_own_answer(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    long_ago = int(HOUR0) - 3 * DAY
    scene.store.add([Bucket(hour=long_ago, node="n2", user="li", queue="cv", allocated=5.0)], {})
    scene.pass_time(20)
    for _ in range(2):
        assert scene.hours() == {"zhang": 20.0, "li": 5.0}
        assert scene.hours("queue") == {"nlp": 20.0, "cv": 5.0}
        assert scene.hours("node") == {"n1": 20.0, "n2": 5.0}
        assert scene.hours(seconds=DAY) == {"zhang": 20.0}
    scene.store.close()


def test_what_is_written_to_an_ended_hour_later_is_in_the_next_report(tmp_path: Path) -> None:
    scene, ended = Scene(tmp_path), int(HOUR0) - 2 * HOUR
    for seconds in (5.0, 10.0):
        scene.store.add([Bucket(hour=ended, user="li", allocated=5.0)], {})
        assert scene.hours()["li"] == seconds
    scene.store.close()


def test_what_was_deleted_is_not_in_the_next_report(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.store.add([Bucket(hour=int(HOUR0) - n * HOUR, user="li", allocated=1.0) for n in range(1, 5)], {})
    assert scene.hours()["li"] == 4.0
    scene.store.shrink()
    assert scene.hours()["li"] == 2.0
    scene.store.prune(HOUR0 + 500 * DAY)
    assert "li" not in scene.hours()
    scene.store.close()


def test_reports_while_usage_is_saved_neither_miss_nor_repeat_it(tmp_path: Path) -> None:
    scene, wrong, ended = Scene(tmp_path), list[tuple[float, float, float]](), threading.Event()
    scene.pass_time(100)

    def read() -> None:
        while not ended.is_set():
            earliest = scene.clock.time() - HOUR0
            seconds = scene.hours()["zhang"]
            if not earliest <= seconds <= scene.clock.time() - HOUR0:
                wrong.append((earliest, seconds, scene.clock.time() - HOUR0))

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(50):
        scene.clock.advance(CYCLE)
        scene.view = view(*BUSY.gpus)
        scene.recorder.save()
    ended.set()
    reader.join()
    assert wrong == []
    assert scene.hours() == {"zhang": 600.0}
    scene.store.close()


def test_reading_reports_does_not_postpone_saving(tmp_path: Path) -> None:
    """What a kill would lose is at most a minute."""
    scene = Scene(tmp_path)
    for _ in range(13):
        scene.clock.advance(CYCLE)
        scene.view = view(*BUSY.gpus)
        scene.report()
        scene.recorder._run_cycle()
    with closing(UsageStore(str(tmp_path / FILE))) as after_kill:
        stored = sum(bucket.allocated for bucket in after_kill.buckets(HOUR0, HOUR0 + DAY, "user"))
    assert stored == 120.0
    scene.store.close()


def test_disk_space_is_reported_from_the_first_answer_of_an_agent_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.recorder._run_cycle()
    assert scene.report().total.disk_bytes is None
    scene.agents = (AGENT,)
    scene.clock.advance(CYCLE)
    scene.recorder._run_cycle()
    assert scene.report().total.disk_bytes == 77
    scene.store.close()
