"""The guard against calls that never return, with real threads that really wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from monitor.agent.guard import Guard, HungError
from tests.support import wait_until
from tests.support.clock import FakeClock

SHORT = 0.02
LONG = 10.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def guard(clock: FakeClock, request: pytest.FixtureRequest) -> Iterator[Guard]:
    guard = Guard(request.node.name, clock)
    yield guard
    guard.close()
    wait_until(lambda: not lanes(request), 5, "all lanes of the guard have ended")


@pytest.fixture
def dead() -> Iterator[threading.Event]:
    """A dead server: calls wait for it until the test, or at the latest its end, brings it back."""
    back = threading.Event()
    yield back
    back.set()


def lanes(request: pytest.FixtureRequest) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == f"guard-{request.node.name}"]


def raising(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


def test_a_value_is_returned(guard: Guard) -> None:
    assert guard.call("disk", lambda: 42, LONG) == 42
    assert guard.call("disk", lambda: None, LONG) is None


@pytest.mark.parametrize("error", [OSError(5, "I/O error"), ValueError("odd"), KeyboardInterrupt(), SystemExit(3)])
def test_an_error_is_raised_to_the_caller_and_the_lane_lives_on(guard: Guard, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        guard.call("disk", raising(error), LONG)
    assert raised.value is error
    assert guard.call("disk", lambda: "still here", LONG) == "still here"


def test_calls_that_return_share_one_thread(guard: Guard, request: pytest.FixtureRequest) -> None:
    threads = {guard.call(f"disk {number}", threading.get_ident, LONG) for number in range(100)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    assert len(lanes(request)) == 1


def test_a_call_over_its_limit_is_hung_since_it_started(guard: Guard, clock: FakeClock, dead: threading.Event) -> None:
    with pytest.raises(HungError) as hung:
        guard.call("nas", dead.wait, SHORT)
    assert hung.value.since == clock.time()
    assert guard.hung() == {"nas": clock.time()}


def test_a_hung_key_is_not_called_again_and_costs_no_time(
    guard: Guard, clock: FakeClock, dead: threading.Event, request: pytest.FixtureRequest
) -> None:
    since = clock.time()
    called = []
    with pytest.raises(HungError):
        guard.call("nas", dead.wait, SHORT)
    clock.advance(60)
    began = time.monotonic()
    for _ in range(200):
        with pytest.raises(HungError) as hung:
            guard.call("nas", lambda: called.append("again"), LONG)
        assert hung.value.since == since
    assert time.monotonic() - began < LONG / 2
    assert called == []
    assert len(lanes(request)) == 1  # the one left behind; nobody has asked for another


def test_other_keys_are_answered_while_one_hangs(
    guard: Guard, dead: threading.Event, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(HungError):
        guard.call("nas", dead.wait, SHORT)
    assert [guard.call("disk", lambda: "fresh", LONG) for _ in range(100)] == ["fresh"] * 100
    assert len(lanes(request)) == 2


def test_there_are_no_more_threads_than_hung_keys_and_one(
    guard: Guard, dead: threading.Event, request: pytest.FixtureRequest
) -> None:
    for _ in range(50):
        for key in ("nas 1", "nas 2", "nas 3"):
            with pytest.raises(HungError):
                guard.call(key, dead.wait, SHORT)
        guard.call("disk", lambda: None, LONG)
    assert sorted(guard.hung()) == ["nas 1", "nas 2", "nas 3"]
    assert len(lanes(request)) == 4


def test_a_key_recovers_when_its_call_returns(
    guard: Guard, dead: threading.Event, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(HungError):
        guard.call("nas", dead.wait, SHORT)
    dead.set()
    wait_until(lambda: not guard.hung(), 5, "the call came back")
    assert guard.call("nas", lambda: "back", LONG) == "back"
    wait_until(lambda: len(lanes(request)) == 1, 5, "the lane left behind ended")


def test_what_a_late_call_gave_is_not_taken_for_the_next_ones_answer(guard: Guard, dead: threading.Event) -> None:
    def late() -> str:
        dead.wait()
        return "late"

    with pytest.raises(HungError):
        guard.call("nas", late, SHORT)
    dead.set()
    wait_until(lambda: not guard.hung(), 5, "the call came back")
    assert guard.call("nas", lambda: "new", LONG) == "new"


def test_a_late_error_is_nobodys(guard: Guard, dead: threading.Event) -> None:
    def late() -> None:
        dead.wait()
        raise OSError("server rebooted")

    with pytest.raises(HungError):
        guard.call("nas", late, SHORT)
    dead.set()
    wait_until(lambda: not guard.hung(), 5, "the call came back")
    assert guard.call("nas", lambda: "new", LONG) == "new"


def test_keys_that_are_gone_for_good_are_forgotten(guard: Guard, dead: threading.Event) -> None:
    for number in range(20):  # a NAS remounted under a new device number each time
        back = threading.Event()
        with pytest.raises(HungError):
            guard.call(f"0:{number} /nas", back.wait, SHORT)
        back.set()
        wait_until(lambda: not guard.hung(), 5, "the call came back")
    assert len(guard._left_behind) == 1


def test_without_a_thread_to_be_had_the_call_fails_and_does_not_seem_to_hang(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                guard.call("disk", lambda: 1, SHORT)
    assert guard.call("disk", lambda: 1, LONG) == 1


def test_a_closed_guard_leaves_no_thread_and_can_be_used_again(guard: Guard, request: pytest.FixtureRequest) -> None:
    guard.call("disk", lambda: 1, LONG)
    guard.close()
    wait_until(lambda: not lanes(request), 5, "the idle lane ended")
    guard.close()
    assert guard.call("disk", lambda: 2, LONG) == 2
