from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.base.units import (
    format_duration,
    format_ratio,
    format_size,
    parse_duration,
    parse_ratio,
    parse_size,
    quoted,
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90),
        (0, 0),
        (1.5, 1.5),
        ("30s", 30),
        ("250ms", 0.25),
        ("15m", 900),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1.5h", 5400),
        ("7d", 604800),
        ("2w", 1209600),
    ],
)
def test_durations(written: object, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        *("fast", "", "30", "-5s", "5 s", "s", "30x", "30s!", "1:30", "９" * 400 + "s"),
        *(-1, True, None, float("inf"), float("nan"), 10**400, [30], {"s": 30}),
    ],
)
def test_what_is_not_a_duration(written: object) -> None:
    with pytest.raises(ValueError, match="is not a duration; write for example 30s, 15m, 1h30m or 7d"):
        parse_duration(written)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (1024, 1024),
        ("1024", 1024),
        ("10B", 10),
        ("59GB", 59_000_000_000),
        ("50GiB", 53_687_091_200),
        ("50 GiB", 53_687_091_200),
        ("64Mi", 67_108_864),
        ("1.5KiB", 1536),
        ("1kB", 1000),
        ("1KB", 1000),
        ("2TiB", 2 * 1024**4),
    ],
)
def test_sizes(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize("written", ["big", "50gib", "-1GB", "1 2GB", "9999999PiB", "9" * 400, -1, True, None, 1.5, []])
def test_what_is_not_a_size(written: object) -> None:
    with pytest.raises(ValueError, match="is not a size; write for example 500MB, 50GiB or 2TiB"):
        parse_size(written)


@pytest.mark.parametrize(("written", "ratio"), [("80%", 0.8), ("0%", 0), ("99.5 %", 0.995), (0.8, 0.8), (1, 1), (0, 0)])
def test_ratios(written: object, ratio: float) -> None:
    assert parse_ratio(written) == ratio


@pytest.mark.parametrize("written", ["80", "101%", "-1%", 80, 1.01, -0.1, float("nan"), True, None, "most"])
def test_what_is_not_a_ratio(written: object) -> None:
    with pytest.raises(ValueError, match=r"is not a ratio; write for example 80% or 0\.8"):
        parse_ratio(written)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (63_350_767_616, "59.0 GiB"),
        (1024**4, "1.0 TiB"),
        (5 * 1024**5, "5.0 PiB"),
        (5000 * 1024**5, "5000.0 PiB"),
    ],
)
def test_sizes_as_text(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.0004, "0ms"),
        (0.35, "350ms"),
        (1, "1s"),
        (2.54, "2.5s"),
        (59.96, "1m"),
        (60, "1m"),
        (90, "1m30s"),
        (5400, "1h30m"),
        (3601, "1h"),
        (86399.9, "1d"),
        (616_000, "7d3h"),
    ],
)
def test_durations_as_text(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@settings(deadline=None)  # passes on a busy machine
@given(st.floats(min_value=0, max_value=1e9))
def test_a_duration_as_text_is_read_back_as_nearly_the_same(seconds: float) -> None:
    read_back = parse_duration(format_duration(seconds))
    assert abs(read_back - seconds) <= max(0.001, seconds / 24)


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**18))
def test_a_size_as_text_is_read_back_as_nearly_the_same(size: int) -> None:
    assert abs(parse_size(format_size(size)) - size) <= size * 0.05 + 1


def test_ratios_as_text() -> None:
    assert [format_ratio(ratio) for ratio in (0, 0.804, 1)] == ["0%", "80%", "100%"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a", "'a'"), (5, "5"), (True, "true"), (None, "nothing"), ({"a": 1}, "a mapping"), ([1], "a list")],
)
def test_values_named_in_messages(value: object, shown: str) -> None:
    assert quoted(value) == shown


def test_a_long_value_does_not_flood_a_message() -> None:
    assert len(quoted("x" * 10_000)) < 150
