"""Sums of ended hours: read once, and again after a write to the period."""

from __future__ import annotations

from monitor.report.buckets import Bucket
from monitor.report.closed_hours import MAX_SUMS, ClosedHours


class Reader:
    def __init__(self) -> None:
        self.reads = 0

    def read(self) -> tuple[Bucket, ...]:
        self.reads += 1
        return (Bucket(hour=0, allocated=float(self.reads)),)


def test_a_period_is_read_once() -> None:
    hours, reader = ClosedHours(), Reader()
    assert hours.get("user", 0, 7200, reader.read) == hours.get("user", 0, 7200, reader.read)
    assert reader.reads == 1


def test_each_dimension_and_period_has_its_own_sums() -> None:
    hours, reader = ClosedHours(), Reader()
    asked = [("user", 0, 7200), ("node", 0, 7200), ("user", 3600, 7200), ("user", 0, 10800)]
    for number, (by, since, until) in enumerate(asked, 1):
        assert hours.get(by, since, until, reader.read)[0].allocated == number  # type: ignore[arg-type]


def test_a_write_drops_the_periods_that_contain_its_hour() -> None:
    hours, reader = ClosedHours(), Reader()
    for until in (3600, 7200):
        hours.get("user", 0, until, reader.read)
    hours.forget(3600)
    hours.get("user", 0, 3600, reader.read)
    assert reader.reads == 2
    hours.get("user", 0, 7200, reader.read)
    assert reader.reads == 3


def test_the_sums_used_last_are_kept() -> None:
    hours, reader = ClosedHours(), Reader()
    for until in range(MAX_SUMS + 1):
        hours.get("user", 0, until, reader.read)
        hours.get("user", 0, 0, reader.read)
    assert reader.reads == MAX_SUMS + 1
    hours.get("user", 0, 1, reader.read)
    assert reader.reads == MAX_SUMS + 2
