"""Maintenance windows by crontab, and quiet hours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time

from monitor.alert.matchers import Matcher, matches
from monitor.base.cron import cron_trigger, fires_in, zone

_TIME = re.compile(r"(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])")


@dataclass(frozen=True)
class MaintenanceWindow:
    """Maintenance: for `duration` seconds after each time of `cron` nothing is told about what meets the matchers.

    No matchers: about anything. Raise ValueError when the schedule or the zone cannot be understood.
    """

    cron: str
    duration: float
    timezone: str = "UTC"
    matchers: tuple[Matcher, ...] = ()

    def __post_init__(self) -> None:
        cron_trigger(self.cron, self.timezone)
        if self.duration <= 0:
            raise ValueError("a maintenance window needs a duration")

    def open(self, now: float) -> bool:
        """Return whether the window is open: it opens at the time of the schedule and is shut when it is over."""
        return fires_in(self.cron, self.timezone, now - self.duration, now)


@dataclass(frozen=True)
class QuietHours:
    """The hours of the day, by the clock on the wall, in which only what is critical is told. May go over midnight.

    Raise ValueError when a time or the zone cannot be understood.
    """

    start: str
    end: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        zone(self.timezone)
        if _time_of_day(self.start) == _time_of_day(self.end):
            raise ValueError(f"quiet hours from {self.start} to {self.end} have no length")

    def contains(self, now: float) -> bool:
        """Return whether it is quiet: from `start` until before `end`."""
        start, end = _time_of_day(self.start), _time_of_day(self.end)
        local = datetime.fromtimestamp(now, zone(self.timezone)).time()
        if start < end:
            return start <= local < end
        return local >= start or local < end


def open_windows(windows: Iterable[MaintenanceWindow], now: float) -> tuple[MaintenanceWindow, ...]:
    """Return the maintenance windows that are open."""
    return tuple(window for window in windows if window.open(now))


def matching_window(labels: Mapping[str, str], opened: Iterable[MaintenanceWindow]) -> MaintenanceWindow | None:
    """Given the labels of an alert and the windows that are open, return the first that it falls under."""
    return next((window for window in opened if matches(window.matchers, labels)), None)


def _time_of_day(text: str) -> time:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time of day: write 22:00")
    return time(int(found["hour"]), int(found["minute"]))
