from __future__ import annotations

import logging
import socket
import threading
import time

import pytest

from monitor.base.threads import Cancellation, Periodic, WorkerPool, map_parallel, run_parallel, with_deadline
from tests.support import wait_until


def test_periodic_work_is_repeated_until_stopped() -> None:
    calls: list[int] = []
    periodic = Periodic("test", lambda: calls.append(1), interval=0.01)
    periodic.start()
    wait_until(lambda: len(calls) >= 3, 30, "three calls")
    periodic.stop(timeout=60)
    before = len(calls)
    time.sleep(0.05)
    assert len(calls) == before
    assert periodic.stopping


def test_an_exception_costs_one_call(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("odd")

    periodic = Periodic("test", work, interval=0.01)
    with caplog.at_level(logging.CRITICAL):
        periodic.start()
        wait_until(lambda: len(calls) >= 2, 30, "a call after the failed one")
    periodic.stop(timeout=60)


def test_a_call_may_choose_the_pause_after_it_and_wake_ends_any_pause() -> None:
    calls: list[int] = []

    def work() -> float:
        calls.append(1)
        return 3600.0

    periodic = Periodic("test", work, interval=0.0)
    periodic.start()
    wait_until(lambda: len(calls) == 1, 30, "the first call")
    periodic.wake()
    wait_until(lambda: len(calls) == 2, 30, "the call after waking")
    periodic.stop(timeout=60)
    assert len(calls) == 2


def test_the_first_call_can_be_delayed_and_a_stop_ends_the_delay() -> None:
    calls: list[int] = []
    periodic = Periodic("test", lambda: calls.append(1), interval=0.0, initial_delay=3600.0)
    periodic.start()
    periodic.stop(timeout=60)
    assert calls == []


def test_a_pool_runs_what_is_submitted_and_drops_what_comes_after_its_end() -> None:
    pool, ran = WorkerPool(2, "test"), threading.Event()
    pool.submit(ran.set)
    assert ran.wait(60)
    pool.stop(timeout=60)
    pool.submit(lambda: pytest.fail("ran after the end"))


def test_results_of_a_parallel_map_are_in_order() -> None:
    assert map_parallel(lambda number: number * 2, [3, 1, 2], 2, "test") == [6, 2, 4]
    assert map_parallel(lambda number: number, [], 2, "test") == []


def test_outcomes_are_in_order_and_the_late_ones_are_known() -> None:
    release = threading.Event()
    outcomes = run_parallel([lambda: 1, lambda: int("x"), lambda: release.wait(60) or 3], 2.0)
    release.set()
    assert [outcome.late for outcome in outcomes] == [False, False, True]
    assert (outcomes[0].value, type(outcomes[1].error)) == (1, ValueError)
    assert run_parallel([], 1.0) == []


def test_work_with_a_deadline_returns_and_raises_as_without() -> None:
    assert with_deadline(30, lambda _: None) is None
    with pytest.raises(ValueError, match="odd"):
        with_deadline(30, lambda _: int("odd"))


def test_work_that_is_too_slow_is_cut_off() -> None:
    near, far = socket.socketpair()
    ended = threading.Event()

    def work(cancellation: Cancellation) -> None:
        cancellation.hold(near)
        near.recv(1)  # returns only because the connection is cancelled
        ended.set()

    with near, far:
        with pytest.raises(TimeoutError):
            with_deadline(0.1, work)
        assert ended.wait(60)


def test_nothing_new_is_connected_after_the_deadline() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with socket.socket() as sock, pytest.raises(ConnectionAbortedError):
        cancellation.hold(sock)
