"""Hours of the day at which an inference service is idle."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.lib.gpu_idle_inference import (
    DAY_HOURS,
    HOUR_SECONDS,
    KEEP_HOURS,
    SAMPLE_SECONDS,
    HourRecord,
    clock_times,
    extended,
    idle_from,
    idle_periods,
    read_record,
)
from monitor.facts.cluster import GpuState, GpuView

MIDNIGHT = 1_763_251_200.0  # 2025-11-16 00:00 UTC
HOUR = int(MIDNIGHT // HOUR_SECONDS)
NIGHT = range(1, 7)


def watched(days: int, idle_hours: Any, start: float = MIDNIGHT) -> HourRecord:
    """The record of a service that is idle at these hours, sampled as the rule does."""
    record, now, idle_since = HourRecord(start), start, None
    while now < start + days * DAY_HOURS * HOUR_SECONDS:
        now += SAMPLE_SECONDS
        hour = int((now - 1) // HOUR_SECONDS) % DAY_HOURS
        idle_since = (idle_since or now - SAMPLE_SECONDS) if hour in idle_hours else None
        record = extended(record, idle_since, now)
    return record


def test_the_same_hours_on_each_day() -> None:
    periods = idle_periods(watched(3, NIGHT), 3, 2)
    assert periods == ((HOUR + 2 * DAY_HOURS + 1, 6),)
    assert clock_times(periods, "UTC") == "01:00-07:00"
    assert clock_times(periods, "Asia/Shanghai") == "09:00-15:00"


def test_not_before_so_many_days_were_seen() -> None:
    assert idle_periods(watched(2, NIGHT), 3, 2) == ()


def test_a_period_past_midnight_is_one() -> None:
    assert clock_times(idle_periods(watched(3, {22, 23, 0, 1}), 3, 2), "UTC") == "22:00-02:00"


def test_several_periods_and_short_ones() -> None:
    record = watched(3, {2, 3, 4, 12, 20, 21})
    assert clock_times(idle_periods(record, 3, 2), "UTC") == "02:00-05:00, 20:00-22:00"
    assert clock_times(idle_periods(record, 3, 1), "UTC") == "02:00-05:00, 12:00-13:00, 20:00-22:00"


def test_a_busy_night_ends_it() -> None:
    record = watched(1, (), start=watched(2, NIGHT).at)
    both = HourRecord(record.at, watched(2, NIGHT).past + record.past)
    assert idle_periods(both, 3, 2) == ()


def test_always_idle_is_the_whole_day() -> None:
    ((_, length),) = idle_periods(watched(3, range(24)), 3, 2)
    assert length == DAY_HOURS


def test_what_was_not_seen_is_not_idle() -> None:
    record = watched(3, range(24))
    later = extended(record, MIDNIGHT, record.at + 6 * HOUR_SECONDS)
    assert later.past.endswith("??????")
    assert all(length < DAY_HOURS for _, length in idle_periods(later, 3, 2))


def test_a_week_is_kept() -> None:
    assert len(watched(9, NIGHT).past) == KEEP_HOURS
    assert idle_periods(watched(9, NIGHT), 99, 2) != ()


def test_it_survives_a_restart() -> None:
    record = watched(1, NIGHT)
    assert read_record(record.memory(), record.at + 60) == record


@pytest.mark.parametrize(
    "memory", [None, {}, {"at": "x"}, [1], {"at": MIDNIGHT + 99, "past": "", "idle": 0, "seen": 0}]
)
def test_an_odd_memory_begins_anew(memory: Any) -> None:
    assert read_record(memory, MIDNIGHT) == HourRecord(MIDNIGHT)


def test_idle_from_is_when_the_last_gpu_went_idle() -> None:
    gpus = [
        GpuView(node="n", index=index, state=GpuState.BUSY, idle_since=since) for index, since in enumerate((5.0, 9.0))
    ]
    assert idle_from(gpus) == 9.0
    assert idle_from([*gpus, GpuView(node="n", index=2, state=GpuState.BUSY)]) is None
    assert idle_from([]) is None
