"""Maintenance windows on a cron schedule, and quiet hours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time

from monitor.alert.matchers import Matcher, matches
from monitor.base.cron import cron_trigger, fires_in
from monitor.base.localtime import zone

_TIME = re.compile(r"(?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])")


@dataclass(frozen=True)
class MaintenanceWindow:
    """Suppresses notifications about alerts that match, for `duration` seconds after each time of `cron`.

    Without matchers it applies to all alerts. Raise ValueError for an invalid schedule or time zone.
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
        """Whether the window is open: from a scheduled time until before its end."""
        return fires_in(self.cron, self.timezone, now - self.duration, now)


@dataclass(frozen=True)
class QuietHours:
    """Hours of the day, in local time, during which only critical alerts are sent; may span midnight.

    Raise ValueError for an invalid time or time zone.
    """

    start: str
    end: str
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        zone(self.timezone)
        if time_of_day(self.start) == time_of_day(self.end):
            raise ValueError(f"quiet hours from {self.start} to {self.end} have no length")

    def contains(self, now: float) -> bool:
        """Whether it is between `start` and before `end`."""
        start, end = time_of_day(self.start), time_of_day(self.end)
        local = datetime.fromtimestamp(now, zone(self.timezone)).time()
        if start < end:
            return start <= local < end
        return local >= start or local < end


def open_windows(windows: Iterable[MaintenanceWindow], now: float) -> tuple[MaintenanceWindow, ...]:
    """Maintenance windows that are open."""
    return tuple(window for window in windows if window.open(now))


def matching_window(labels: Mapping[str, str], opened: Iterable[MaintenanceWindow]) -> MaintenanceWindow | None:
    """First of the open windows that an alert matches."""
    return next((window for window in opened if matches(window.matchers, labels)), None)


def time_of_day(text: str) -> time:
    """Time of day of a text such as `22:00`. Raise ValueError."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a time of day; write for example 22:00")
    return time(int(match["hour"]), int(match["minute"]))
