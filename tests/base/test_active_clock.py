"""A clock that stops while the process is suspended."""

from __future__ import annotations

from monitor.base.active_clock import MAX_TICK_GAP_SECONDS, TICK_SECONDS, ActiveClock


class Hand:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_goes_on_as_long_as_it_beats() -> None:
    hand = Hand()
    lifetime = ActiveClock(hand)
    for beat in range(1, 50):
        hand.now += TICK_SECONDS
        assert lifetime.seconds() == beat * TICK_SECONDS
        lifetime.tick()
        assert lifetime.seconds() == beat * TICK_SECONDS


def test_a_pause_is_not_lived_whoever_looks_first() -> None:
    for beats_first in (True, False):
        hand = Hand()
        lifetime = ActiveClock(hand)
        hand.now += 3600
        if beats_first:
            lifetime.tick()
        assert lifetime.seconds() == MAX_TICK_GAP_SECONDS
        lifetime.tick()
        hand.now += TICK_SECONDS
        assert lifetime.seconds() == MAX_TICK_GAP_SECONDS + TICK_SECONDS


def test_a_beat_that_is_a_little_late_is_lived() -> None:
    hand = Hand()
    lifetime = ActiveClock(hand)
    hand.now += 3 * TICK_SECONDS
    assert lifetime.seconds() == 3 * TICK_SECONDS
