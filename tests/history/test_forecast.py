"""The forecast of a full disk: only from enough history and a clear trend, with its uncertainty."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from monitor.history.forecast import MAX_FORECAST_SECONDS, disk_forecast
from monitor.history.model import Point

NOW = 1_763_251_200.0
HOUR, DAY, STEP = 3600.0, 86400.0, 600.0


def growth(hours: float, used: Callable[[float], float]) -> list[Point]:
    """Points of the last hours; `used` is given the hours since the first."""
    count = int(hours * HOUR / STEP)
    return [(NOW - (count - number) * STEP, used(number * STEP / HOUR)) for number in range(count)]


NONE: dict[str, list[Point]] = {
    "no history": [],
    "three hours at 34 %": growth(3, lambda hours: 0.34 + 0.1 * hours),
    "a disk that does not grow": growth(48, lambda _: 0.9),
    "one that shrinks": growth(48, lambda hours: 0.9 - 0.005 * hours),
    "a single copy": growth(48, lambda hours: 0.3 if hours < 30 else 0.5),
    "noise": growth(48, lambda hours: 0.5 + random.Random(hours).uniform(-0.05, 0.05)),
    "a disk that was cleaned up an hour ago": growth(48, lambda hours: 0.3 + 0.01 * hours if hours < 47 else 0.3),
    "weeks until it is full": growth(48, lambda hours: 0.3 + 0.0003 * hours),
    "unknown values": [(NOW - DAY + number * STEP, None) for number in range(144)],
}


@pytest.mark.parametrize("what", NONE)
def test_there_is_no_forecast_of(what: str) -> None:
    assert disk_forecast(NONE[what]) is None


def test_steady_growth_is_foreseen_with_little_uncertainty() -> None:
    found = disk_forecast(growth(24, lambda hours: 0.5 + 0.01 * hours))
    assert found is not None
    assert found.rate * HOUR == pytest.approx(0.01, rel=0.01)
    left = (1 - found.used) / 0.01 * HOUR
    assert found.full_at - found.at == pytest.approx(left, rel=0.01)
    assert found.earliest_at - found.at == pytest.approx(left, rel=0.05)
    assert found.latest_at == pytest.approx(found.full_at, abs=HOUR)


def test_uneven_growth_has_a_wide_range() -> None:
    found = disk_forecast(growth(48, lambda hours: 0.3 + 0.06 * int(hours / 9)))
    assert found is not None
    assert found.earliest_at < found.full_at
    assert found.latest_at is None or found.full_at < found.latest_at
    assert found.full_at - found.earliest_at > HOUR


def test_a_cleanup_begins_another_trend() -> None:
    found = disk_forecast(growth(72, lambda hours: 0.3 + 0.02 * hours if hours < 24 else 0.2 + 0.01 * (hours - 24)))
    assert found is not None
    assert found.rate * HOUR == pytest.approx(0.01, rel=0.02)


def test_the_end_of_the_range_may_be_too_far_away() -> None:
    found = disk_forecast(growth(48, lambda hours: 0.2 + 0.03 * int(hours / 11)))
    assert found is not None
    assert found.latest_at is None
    assert found.full_at - found.at < MAX_FORECAST_SECONDS


def test_a_full_disk_is_full_now() -> None:
    found = disk_forecast(growth(24, lambda hours: min(1.0, 0.8 + 0.0085 * hours)))
    assert found is not None
    assert found.full_at - found.at < HOUR
