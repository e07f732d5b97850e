"""Times and quantities."""

from __future__ import annotations

import pytest

from monitor.kube.decode.values import parse_quantity, parse_time

AT = 1614834367.0  # 2021-03-04T05:06:07Z
GIB = 1024.0**3


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        ("2", 2.0),
        ("500m", 0.5),
        ("16Gi", 16 * GIB),
        ("1.5G", 1.5e9),
        ("100k", 1e5),
        ("1e3", 1000.0),
        ("12E", 12e18),
        ("1Ei", 2.0**60),
        ("-3", -3.0),
        ("50n", 50e-9),
        ("128974848", 128974848.0),
        (4, 4),
        (0, 0),
        (None, None),
        ("", None),
        ("many", None),
        ("Gi", None),
        ("1GiB", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_quantities(text: str | int | None, expect: float | None) -> None:
    amount = parse_quantity(text)
    assert amount is None if expect is None else amount == pytest.approx(expect)


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        ("2021-03-04T05:06:07Z", AT),
        ("2021-03-04T05:06:07.250000Z", AT + 0.25),
        ("2021-03-04T13:06:07+08:00", AT),
        ("0001-01-01T00:00:00Z", None),
        ("2021-03-04T05:06:07", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_times(text: str | None, expect: float | None) -> None:
    assert parse_time(text) == expect
