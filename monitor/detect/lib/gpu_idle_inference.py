"""Hours of the day at which the GPUs of an inference service are idle.

A service that waits for requests is not an idle job: only hours that are idle day after day justify a change of its
replicas. Each hour of the last week is one letter in the memory of the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from monitor.facts.cluster import GpuView

HOUR_SECONDS = 3600
DAY_HOURS = 24
KEEP_HOURS = 7 * DAY_HOURS
MAX_DAYS = KEEP_HOURS // DAY_HOURS
SAMPLE_SECONDS = 300.0
MAX_GAP_SECONDS = 900.0  # longer gaps between evaluations are unknown
MIN_SEEN_SECONDS = HOUR_SECONDS / 2
IDLE_RATIO = 0.95  # of what was seen of an hour
IDLE, BUSY, UNSEEN = "i", "b", "?"


@dataclass(frozen=True)
class HourRecord:
    """Idleness until `at`: of the hours before the current one, as letters, and of the current one, in seconds."""

    at: float
    past: str = ""
    idle: float = 0.0
    seen: float = 0.0

    @property
    def hour(self) -> int:
        """The current hour since the epoch."""
        return int(self.at // HOUR_SECONDS)

    def memory(self) -> dict[str, Any]:
        return {"at": self.at, "past": self.past, "idle": self.idle, "seen": self.seen}


def read_record(memory: Any, now: float) -> HourRecord:
    """The remembered record; a new one if there is none, or if the clock was set back."""
    try:
        at, past = float(memory["at"]), str(memory["past"])[-KEEP_HOURS:]
        record = HourRecord(at, past, float(memory["idle"]), float(memory["seen"]))
    except (TypeError, KeyError, ValueError, OverflowError):
        return HourRecord(now)
    return record if 0.0 <= now - record.at <= KEEP_HOURS * HOUR_SECONDS else HourRecord(now)


def idle_from(gpus: Sequence[GpuView]) -> float | None:
    """Since when all GPUs of a service are idle; None while one works."""
    starts = [gpu.idle_since for gpu in gpus if gpu.idle_since is not None]
    return max(starts) if len(starts) == len(gpus) and starts else None


def extended(record: HourRecord, idle_since: float | None, now: float) -> HourRecord:
    """The record until `now`, after which the service has been idle since `idle_since`."""
    unseen = now - record.at > MAX_GAP_SECONDS
    while record.at < now:
        until = min(now, float((record.hour + 1) * HOUR_SECONDS))
        seen = 0.0 if unseen else until - record.at
        idle = 0.0 if unseen or idle_since is None else max(0.0, until - max(record.at, idle_since))
        past, idle, seen = record.past, record.idle + idle, record.seen + seen
        if until == (record.hour + 1) * HOUR_SECONDS:
            past, idle, seen = (past + _letter(idle, seen))[-KEEP_HOURS:], 0.0, 0.0
        record = HourRecord(until, past, idle, seen)
    return record


def _letter(idle: float, seen: float) -> str:
    if seen < MIN_SEEN_SECONDS:
        return UNSEEN
    return IDLE if idle >= IDLE_RATIO * seen else BUSY


def idle_periods(record: HourRecord, days: int, min_hours: int) -> tuple[tuple[int, int], ...]:
    """Periods of a day that were idle on each of the last days: first hour since the epoch, and number of hours.

    A period has at least `min_hours`. Of a service that was always idle it is the whole day.
    """
    days = max(1, min(days, MAX_DAYS))
    if len(record.past) < days * DAY_HOURS:
        return ()
    recent = record.past[-days * DAY_HOURS :]
    first = record.hour - DAY_HOURS
    idle = [all(recent[day * DAY_HOURS + hour] == IDLE for day in range(days)) for hour in range(DAY_HOURS)]
    if all(idle):
        return ((first, DAY_HOURS),)
    start = idle.index(False)  # a period may go past the end of the window, as past midnight
    periods, length = [], 0
    for step in range(start, start + DAY_HOURS + 1):
        if idle[step % DAY_HOURS]:
            length += 1
            continue
        if length >= max(1, min_hours):
            periods.append((first + step - length, length))
        length = 0
    return tuple(sorted(periods, key=lambda period: period[0] % DAY_HOURS))


def clock_times(periods: Sequence[tuple[int, int]], timezone: str | None) -> str:
    """Periods as times of the day: 01:00-07:00, 12:00-14:00. No time zone is that of the daemon."""
    zone = ZoneInfo(timezone) if timezone else None
    ends = [((first * HOUR_SECONDS), (first + length) * HOUR_SECONDS) for first, length in periods]
    times = [tuple(f"{datetime.fromtimestamp(at, zone):%H:%M}" for at in pair) for pair in ends]
    return ", ".join(sorted("-".join(pair) for pair in times))
