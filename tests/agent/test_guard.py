"""The guard against calls that never return, with real threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from monitor.agent.guard import HungCallGuard, HungError
from tests.support import wait_until
from tests.support.clock import FakeClock

SHORT_SECONDS = 0.02
LONG_SECONDS = 60.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def guard(clock: FakeClock, request: pytest.FixtureRequest) -> Iterator[HungCallGuard]:
    guard = HungCallGuard(request.node.name, clock)
    yield guard
    guard.close()
    wait_until(lambda: not workers(request), 30, "all workers of the guard have ended")


@pytest.fixture
def dead() -> Iterator[threading.Event]:
    """A dead server: calls wait until the test, at the latest its teardown, brings it back."""
    back = threading.Event()
    yield back
    back.set()


def workers(request: pytest.FixtureRequest) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == f"guard-{request.node.name}"]


def raising(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


def test_a_value_is_returned(guard: HungCallGuard) -> None:
    assert guard.call("disk", lambda: 42, LONG_SECONDS) == 42
    assert guard.call("disk", lambda: None, LONG_SECONDS) is None


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), ValueError("odd"), KeyboardInterrupt(), SystemExit(3)])
def test_an_error_is_raised_to_the_caller_and_the_worker_lives_on(guard: HungCallGuard, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        guard.call("disk", raising(error), LONG_SECONDS)
    assert raised.value is error
    assert guard.call("disk", lambda: "still here", LONG_SECONDS) == "still here"


def test_calls_that_return_share_one_thread(guard: HungCallGuard, request: pytest.FixtureRequest) -> None:
    threads = {guard.call(f"disk {number}", threading.get_ident, LONG_SECONDS) for number in range(100)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert len(workers(request)) == 1


def test_a_call_over_its_limit_is_hung_since_it_started(
    guard: HungCallGuard, clock: FakeClock, dead: threading.Event
) -> None:
    with pytest.raises(HungError) as hung:
        guard.call("nas", dead.wait, SHORT_SECONDS)
    assert hung.value.since == clock.time()
    assert guard.hung() == {"nas": clock.time()}


def test_a_hung_key_is_not_called_again_and_costs_no_time(
    guard: HungCallGuard, clock: FakeClock, dead: threading.Event, request: pytest.FixtureRequest
) -> None:
    since = clock.time()
    called = []
    with pytest.raises(HungError):
        guard.call("nas", dead.wait, SHORT_SECONDS)
    clock.advance(60)
    for _ in range(200):
        with pytest.raises(HungError) as hung:
            guard.call("nas", lambda: called.append("again"), LONG_SECONDS)
        assert hung.value.since == since
    assert called == []
    assert len(workers(request)) == 1  # the abandoned one; no call has needed another


def test_other_keys_are_answered_while_one_hangs(
    guard: HungCallGuard, dead: threading.Event, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(HungError):
        guard.call("nas", dead.wait, SHORT_SECONDS)
    assert [guard.call("disk", lambda: "fresh", LONG_SECONDS) for _ in range(100)] == ["fresh"] * 100
    assert len(workers(request)) == 2


def test_there_are_no_more_threads_than_hung_keys_and_one(
    guard: HungCallGuard, dead: threading.Event, request: pytest.FixtureRequest
) -> None:
    for _ in range(50):
        for key in ("nas 1", "nas 2", "nas 3"):
            with pytest.raises(HungError):
                guard.call(key, dead.wait, SHORT_SECONDS)
        guard.call("disk", lambda: None, LONG_SECONDS)
    assert sorted(guard.hung()) == ["nas 1", "nas 2", "nas 3"]
    assert len(workers(request)) == 4


def test_a_key_recovers_when_its_call_returns(
    guard: HungCallGuard, dead: threading.Event, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(HungError):
        guard.call("nas", dead.wait, SHORT_SECONDS)
    dead.set()
    wait_until(lambda: not guard.hung(), 30, "the call returned")
    assert guard.call("nas", lambda: "back", LONG_SECONDS) == "back"
    wait_until(lambda: len(workers(request)) == 1, 30, "the abandoned worker ended")


def test_what_a_late_call_gave_is_not_taken_for_the_next_ones_answer(
    guard: HungCallGuard, dead: threading.Event
) -> None:
    def late() -> str:
        dead.wait()
        return "late"

    with pytest.raises(HungError):
        guard.call("nas", late, SHORT_SECONDS)
    dead.set()
    wait_until(lambda: not guard.hung(), 30, "the call returned")
    assert guard.call("nas", lambda: "new", LONG_SECONDS) == "new"


def test_a_late_error_is_nobodys(guard: HungCallGuard, dead: threading.Event) -> None:
    def late() -> None:
        dead.wait()
        raise OSError("server rebooted")

    with pytest.raises(HungError):
        guard.call("nas", late, SHORT_SECONDS)
    dead.set()
    wait_until(lambda: not guard.hung(), 30, "the call returned")
    assert guard.call("nas", lambda: "new", LONG_SECONDS) == "new"


def test_keys_that_are_gone_for_good_are_forgotten(guard: HungCallGuard, dead: threading.Event) -> None:
    for number in range(20):  # a NAS remounted under a new device number each time
        back = threading.Event()
        with pytest.raises(HungError):
            guard.call(f"0:{number} /nas", back.wait, SHORT_SECONDS)
        back.set()
        wait_until(lambda: not guard.hung(), 30, "the call returned")
    assert len(guard._abandoned) == 1


def test_without_a_thread_to_be_had_the_call_fails_and_does_not_seem_to_hang(
    guard: HungCallGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                guard.call("disk", lambda: 1, SHORT_SECONDS)
    assert guard.call("disk", lambda: 1, LONG_SECONDS) == 1


def test_a_closed_guard_leaves_no_thread_and_can_be_used_again(
    guard: HungCallGuard, request: pytest.FixtureRequest
) -> None:
    guard.call("disk", lambda: 1, LONG_SECONDS)
    guard.close()
    wait_until(lambda: not workers(request), 30, "the idle worker ended")
    guard.close()
    assert guard.call("disk", lambda: 2, LONG_SECONDS) == 2
