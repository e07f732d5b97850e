"""A clock that stands still while the process does."""

from __future__ import annotations

from monitor.base.active_clock import MAX_TICK_GAP_SECONDS, TICK_SECONDS, ActiveClock


class ManualTime:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_advances_while_it_ticks() -> None:
    current = ManualTime()
    clock = ActiveClock(current)
    for tick in range(1, 50):
        current.now += TICK_SECONDS
        assert clock.seconds() == tick * TICK_SECONDS
        clock.tick()
        assert clock.seconds() == tick * TICK_SECONDS


def test_a_pause_does_not_count_whether_tick_or_read_comes_first() -> None:
    for ticks_first in (True, False):
        current = ManualTime()
        clock = ActiveClock(current)
        current.now += 3600
        if ticks_first:
            clock.tick()
        assert clock.seconds() == MAX_TICK_GAP_SECONDS
        clock.tick()
        current.now += TICK_SECONDS
        assert clock.seconds() == MAX_TICK_GAP_SECONDS + TICK_SECONDS


def test_a_tick_that_is_a_little_late_counts() -> None:
    current = ManualTime()
    clock = ActiveClock(current)
    current.now += 3 * TICK_SECONDS
    assert clock.seconds() == 3 * TICK_SECONDS
