"""The runner: collectors that work, fail, are absent or hang. The clock is a parameter, threads are real."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.runner import CollectorRunner, CollectorWorker
from monitor.agent.settings import CollectorSchedule
from tests.support import wait_until
from tests.support.clock import FakeClock

INTERVAL_SECONDS, LIMIT_SECONDS = 15.0, 10.0
MAX_AGE_SECONDS = 2 * INTERVAL_SECONDS + LIMIT_SECONDS


class Scripted:
    """A collector with a scripted `collect`."""

    def __init__(self, collect: Callable[[], Any], name: str = "disk") -> None:
        self.name = name
        self.collect = collect


class Stuck:
    """A collector that hangs until it is released. Counts its runs."""

    name = "disk"

    def __init__(self) -> None:
        self.entered = 0
        self.release = threading.Event()

    def collect(self) -> str:
        self.entered += 1
        self.release.wait(60)
        return f"reading {self.entered}"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    stuck = Stuck()
    yield stuck
    stuck.release.set()


def worker(collect: Callable[[], Any], clock: FakeClock, name: str = "disk") -> CollectorWorker:
    schedule = CollectorSchedule(enabled=True, interval=INTERVAL_SECONDS, limit=LIMIT_SECONDS)
    return CollectorWorker(Scripted(collect, name), schedule, clock=clock)


def in_background(worker: CollectorWorker) -> threading.Thread:
    thread = threading.Thread(target=worker.run_once, daemon=True)
    thread.start()
    return thread


def fail(error: Exception) -> Any:
    raise error


def in_turn(*answers: object) -> Callable[[], Any]:
    """A `collect` that returns these answers in turn, raising those that are errors."""
    remaining = iter(answers)

    def collect() -> Any:
        answer = next(remaining)
        return fail(answer) if isinstance(answer, Exception) else answer

    return collect


OUTCOMES: list[tuple[str, Callable[[], Any], str, int, Any, str | None]] = [
    # name, collector, then: outcome, failures, reading, message
    ("works", lambda: ("a disk",), "ok", 0, ("a disk",), None),
    ("nothing there is also a reading", lambda: (), "ok", 0, (), None),
    ("absent", lambda: fail(AbsentError("no driver")), "absent", 0, None, "no driver"),
    ("fails", lambda: fail(OSError(13, "denied")), "failed", 1, None, "PermissionError: [Errno 13] denied"),
    ("fails oddly", lambda: fail(ZeroDivisionError()), "failed", 1, None, "ZeroDivisionError: "),
]


@pytest.mark.parametrize(
    ("collect", "outcome", "failures", "reading", "message"),
    [row[1:] for row in OUTCOMES],
    ids=[row[0] for row in OUTCOMES],
)
def test_outcome_of_a_run(
    clock: FakeClock, collect: Callable[[], Any], outcome: str, failures: int, reading: Any, message: str | None
) -> None:
    one = worker(collect, clock)
    one.run_once()
    fact = one.fact()
    assert (fact.outcome, fact.runs, fact.failures, fact.message) == (outcome, 1, failures, message)
    assert fact.succeeded_at == (clock.time() if outcome == "ok" else None)
    assert fact.hung_since is None
    assert one.fresh() == reading


def test_before_the_first_run_nothing_is_known(clock: FakeClock) -> None:
    one = worker(lambda: 1, clock)
    assert one.fresh() is None
    fact = one.fact()
    assert (fact.name, fact.outcome, fact.runs, fact.duration_seconds) == ("disk", "starting", 0, None)
    assert fact.interval_seconds == INTERVAL_SECONDS


def test_the_duration_is_that_of_the_last_run(clock: FakeClock) -> None:
    seconds = iter([3.0, 0.5])
    one = worker(lambda: clock.advance(next(seconds)), clock)
    one.run_once()
    assert one.fact().duration_seconds == 3.0
    one.run_once()
    assert one.fact().duration_seconds == 0.5


def test_a_reading_is_as_old_as_the_start_of_its_run(clock: FakeClock) -> None:
    def slow() -> str:
        clock.advance(9)
        return "read at the start of nine seconds"

    one = worker(slow, clock)
    one.run_once()
    clock.advance(MAX_AGE_SECONDS - 9)
    assert one.fresh() is not None
    clock.advance(0.1)
    assert one.fresh() is None


def test_after_a_failure_the_last_reading_stays_until_it_is_stale_and_then_vanishes(clock: FakeClock) -> None:
    one = worker(in_turn("reading", OSError("gone")), clock)
    one.run_once()
    read_at = clock.time()
    clock.advance(INTERVAL_SECONDS)
    one.run_once()
    assert (one.fresh(), one.fact().outcome) == ("reading", "failed")
    clock.advance(MAX_AGE_SECONDS - INTERVAL_SECONDS)
    assert one.fresh() == "reading"
    clock.advance(0.1)
    assert one.fresh() is None
    assert one.fact().succeeded_at == read_at


def test_what_has_become_absent_is_gone_at_once(clock: FakeClock) -> None:
    one = worker(in_turn("reading", AbsentError("driver unloaded")), clock)
    one.run_once()
    one.run_once()
    assert one.fresh() is None
    assert (one.fact().outcome, one.fact().failures) == ("absent", 0)


def test_failures_are_counted_and_a_success_clears_the_message_but_not_the_count(clock: FakeClock) -> None:
    one = worker(in_turn(OSError("one"), OSError("two"), "fine"), clock)
    seen = []
    for _ in range(3):
        one.run_once()
        seen.append((one.fact().outcome, one.fact().runs, one.fact().failures, one.fact().message))
    assert seen == [("failed", 1, 1, "OSError: one"), ("failed", 2, 2, "OSError: two"), ("ok", 3, 2, None)]


def test_the_same_failure_is_logged_once(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    one = worker(in_turn(*[OSError("one")] * 5, *[OSError("two")] * 5), clock)
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            one.run_once()
    assert [record.message for record in caplog.records] == [
        "collector disk failed: OSError: one",
        "collector disk failed: OSError: two",
    ]


def test_a_run_over_its_limit_is_hung_its_reading_goes_stale_and_it_recovers(clock: FakeClock, stuck: Stuck) -> None:
    one = worker(stuck.collect, clock)
    stuck.release.set()
    one.run_once()
    stuck.release.clear()
    clock.advance(INTERVAL_SECONDS)
    began = clock.time()
    thread = in_background(one)
    wait_until(lambda: stuck.entered == 2, 30, "the run began")

    clock.advance(LIMIT_SECONDS)
    assert one.fact().hung_since is None  # exactly at the limit
    clock.advance(0.1)
    assert one.fact().hung_since == began
    assert one.fresh() == "reading 1"  # hung, but the last result is still fresh
    clock.advance(MAX_AGE_SECONDS)
    assert one.fresh() is None

    stuck.release.set()
    thread.join(60)
    assert one.fact().hung_since is None
    assert one.fact().outcome == "ok"
    assert one.fact().duration_seconds == pytest.approx(LIMIT_SECONDS + 0.1 + MAX_AGE_SECONDS)
    # The result of a run is as old as its start.
    assert one.fresh() is None
    one.run_once()
    assert one.fresh() == "reading 3"


def test_a_hung_collector_is_not_started_twice_and_the_others_carry_on(stuck: Stuck) -> None:
    runs = []
    quick = CollectorSchedule(enabled=True, interval=0.01, limit=0.02)
    runner = CollectorRunner(
        [CollectorWorker(stuck, quick), CollectorWorker(Scripted(lambda: runs.append(1), "host"), quick)]
    )
    runner.start()
    try:
        wait_until(lambda: len(runs) >= 10, 30, "the other collector ran ten times")
        hung, well = runner.facts()
        assert stuck.entered == 1
        assert hung.hung_since == pytest.approx(time.time(), abs=60)
        assert (hung.outcome, hung.runs, well.outcome, well.hung_since) == ("starting", 0, "ok", None)
        stuck.release.set()
        wait_until(lambda: stuck.entered >= 3, 30, "it runs again")
        assert runner.facts()[0].outcome == "ok"
    finally:
        runner.stop()


def test_runs_missed_during_a_hang_are_not_made_up_for(clock: FakeClock) -> None:
    durations = iter([5 * INTERVAL_SECONDS, 1])
    one = worker(lambda: clock.advance(next(durations)), clock)
    assert one._run_on_schedule() == 0  # late: run again at once, but only once
    assert one._run_on_schedule() == INTERVAL_SECONDS - 1


def test_a_collector_waits_for_the_first_run_of_those_it_uses() -> None:
    order: list[str] = []

    def slow() -> None:
        time.sleep(0.1)
        order.append("containers")

    once = CollectorSchedule(enabled=True, interval=60, limit=5)
    first = CollectorWorker(Scripted(slow, "containers"), once)
    second = CollectorWorker(Scripted(lambda: order.append("shm"), "shm"), once, after=[first])
    runner = CollectorRunner([second, first])
    runner.start()
    try:
        wait_until(lambda: len(order) == 2, 30, "both ran")
        assert order == ["containers", "shm"]
    finally:
        runner.stop()


def test_a_collector_does_not_wait_for_ever_for_one_that_hangs(stuck: Stuck) -> None:
    ran = threading.Event()
    first = CollectorWorker(stuck, CollectorSchedule(enabled=True, interval=60, limit=0.1))
    second = CollectorWorker(
        Scripted(ran.set, "shm"), CollectorSchedule(enabled=True, interval=60, limit=5), after=[first]
    )
    runner = CollectorRunner([first, second])
    runner.start()
    try:
        assert ran.wait(60)
    finally:
        runner.stop()


def test_a_stopped_runner_runs_nothing_more() -> None:
    runs = []
    runner = CollectorRunner(
        [CollectorWorker(Scripted(lambda: runs.append(1)), CollectorSchedule(enabled=True, interval=0.01, limit=1))]
    )
    runner.start()
    wait_until(lambda: runs, 30, "it ran")
    runner.stop()
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "collect-disk"], 30, "its thread ended")


def test_parts_are_what_is_known_now(clock: FakeClock) -> None:
    workers = [
        worker(lambda: (), clock, "disk"),
        worker(lambda: fail(AbsentError("none")), clock, "gpu"),
        worker(lambda: 1, clock, "host"),
    ]
    for one in workers[:2]:
        one.run_once()
    runner = CollectorRunner(workers)
    assert runner.parts() == {"disk": (), "gpu": None, "host": None}
    assert (runner.fresh("disk"), runner.fresh("no such collector")) == ((), None)
    assert [fact.name for fact in runner.facts()] == ["disk", "gpu", "host"]
