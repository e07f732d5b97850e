from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.i18n.figures import brief_duration, duration, number, percent, size

DURATIONS = [
    (0, "0 s", "0 秒"),
    (-5, "0 s", "0 秒"),
    (59.4, "59 s", "59 秒"),
    (59.6, "1 min", "1 分钟"),
    (185, "3 min 5 s", "3 分钟 5 秒"),
    (3600, "1 h", "1 小时"),
    (3605, "1 h", "1 小时"),
    (7500, "2 h 5 min", "2 小时 5 分钟"),
    (90_000, "1 d 1 h", "1 天 1 小时"),
    (86_460, "1 d", "1 天"),
]


@pytest.mark.parametrize(("seconds", "english", "chinese"), DURATIONS)
def test_duration(seconds: float, english: str, chinese: str) -> None:
    assert duration(seconds, "en") == english
    assert duration(seconds, "zh") == chinese


SIZES = [
    (0, "0 B"),
    (1023, "1023 B"),
    (1024, "1 KiB"),
    (1536, "1.5 KiB"),
    (64 * 1024**2, "64 MiB"),
    (59 * 1024**3, "59 GiB"),
    (1023.9 * 1024**3, "1 TiB"),
    (5000 * 1024**4, "5000 TiB"),
]


@pytest.mark.parametrize(("amount", "expect"), SIZES)
def test_size(amount: float, expect: str) -> None:
    assert size(amount) == expect


def test_numbers() -> None:
    assert [number(value) for value in (8, 8.0, 7.5, 10**9, 1e9)] == ["8", "8", "7.5", "1000000000", "1000000000"]
    assert percent(0.054) == "5%"


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=0, max_value=1e12))
def test_at_most_two_units(seconds: float) -> None:
    assert len(duration(seconds, "en").split()) <= 4


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [(0.35, "350ms", "350毫秒"), (2.5, "2.5s", "2.5秒"), (242, "4m2s", "4分2秒"), (604800 + 10800, "7d3h", "7天3小时")],
)
def test_brief_duration(seconds: float, english: str, chinese: str) -> None:
    assert (brief_duration(seconds, "en"), brief_duration(seconds, "zh")) == (english, chinese)
