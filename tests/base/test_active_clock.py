"""A clock that stands still while the process does."""

from __future__ import annotations

from monitor.base.active_clock import BEAT, MISSED, Lifetime


class Hand:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_goes_on_as_long_as_it_beats() -> None:
    hand = Hand()
    lifetime = Lifetime(hand)
    for beat in range(1, 50):
        hand.now += BEAT
        assert lifetime.seconds() == beat * BEAT
        lifetime.beat()
        assert lifetime.seconds() == beat * BEAT


def test_a_pause_is_not_lived_whoever_looks_first() -> None:
    for beats_first in (True, False):
        hand = Hand()
        lifetime = Lifetime(hand)
        hand.now += 3600
        if beats_first:
            lifetime.beat()
        assert lifetime.seconds() == MISSED
        lifetime.beat()
        hand.now += BEAT
        assert lifetime.seconds() == MISSED + BEAT


def test_a_beat_that_is_a_little_late_is_lived() -> None:
    hand = Hand()
    lifetime = Lifetime(hand)
    hand.now += 3 * BEAT
    assert lifetime.seconds() == 3 * BEAT
