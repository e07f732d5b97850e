"""Cron schedules; APScheduler does the arithmetic."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.cron import CronTrigger

from monitor.base.localtime import zone

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERED = re.compile(r"(?:(?P<all>\*)|(?P<first>[0-7])(?:-(?P<last>[0-7]))?)(?:/(?P<step>[1-7]))?")
# Ten years with two leap days: a schedule that does not fire within them is a mistake, and the search would not end.
_TRIED_FROM = datetime(2024, 1, 1, tzinfo=UTC)
_TRIED_UNTIL = datetime(2034, 1, 1, tzinfo=UTC)
_CHANGE = timedelta(hours=2)  # daylight saving time moves clocks by an hour or half an hour
_TICK = timedelta(microseconds=1)


class LocalTrigger(BaseTrigger):  # type: ignore[misc]  # apscheduler has no types
    """Fires at times of the day in a time zone, once each, when the clocks change too.

    A time that daylight saving time skips fires an hour later: 02:30 becomes 03:30 on that day. A time that it repeats
    fires the first time only, unless the schedule fires in every hour.
    """

    def __init__(self, fields: str, where: ZoneInfo) -> None:
        self._fields = CronTrigger.from_crontab(fields, where)
        self._every_hour = fields.split()[1] == "*"
        self._zone = where

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime | None:
        """For the scheduler: the time after the previous one, or not before now."""
        return self.next_after(now - _TICK if previous_fire_time is None else min(now, previous_fire_time))

    def next_after(self, after: datetime) -> datetime | None:
        """The first time after `after`.

        A skipped time is found only from before the change, so shortly after a change the search starts there.
        """
        start = after = after.astimezone(UTC)
        before = start - _CHANGE
        if before.astimezone(self._zone).utcoffset() != start.astimezone(self._zone).utcoffset():
            start = before
        while True:
            fires: datetime | None = self._fields.get_next_fire_time(None, start + _TICK)
            if fires is None:
                return None
            start = fires.astimezone(UTC)
            if start > after and (self._every_hour or not _is_repeated(fires)):
                return start.astimezone(self._zone)


@lru_cache(maxsize=256)
def cron_trigger(cron: str, timezone: str) -> LocalTrigger:
    """Trigger of a schedule of five crontab fields. Raise ValueError with a message for users.

    0 and 7 are Sunday, as in crontab (APScheduler counts from Monday). If both a day of the month and a day of the
    week are given, both must match.
    """
    where, fields = zone(timezone), cron.split()
    if len(fields) != 5:
        raise ValueError(
            f"{cron!r} is not a schedule: write minute, hour, day, month and day of the week, as in a crontab"
        )
    fields[4] = ",".join(_named_days(part, cron) for part in fields[4].lower().split(","))
    try:
        trigger = LocalTrigger(" ".join(fields), where)
        tried = CronTrigger.from_crontab(" ".join(fields), where)
    except ValueError as error:
        raise ValueError(f"{cron!r} is not a schedule: {error}") from error
    tried.end_date = _TRIED_UNTIL
    if tried.get_next_fire_time(None, _TRIED_FROM) is None:
        raise ValueError(f"{cron!r} is not a schedule: there is no such day")
    return trigger


def next_run(cron: str, timezone: str, after: float) -> float | None:
    """When the schedule fires next after `after`."""
    fires = cron_trigger(cron, timezone).next_after(datetime.fromtimestamp(after, UTC))
    return None if fires is None else fires.timestamp()


def fires_in(cron: str, timezone: str, after: float, until: float) -> bool:
    """Whether the schedule fires after `after` and not later than `until`."""
    fires = next_run(cron, timezone, after)
    return fires is not None and fires <= until


def _is_repeated(fires: datetime) -> bool:
    """Whether the clocks were put back, and showed this time before."""
    return fires.fold == 1 and fires.utcoffset() != fires.replace(fold=0).utcoffset()


def _named_days(part: str, cron: str) -> str:
    """One part of the day-of-week field, with names instead of numbers."""
    found = _NUMBERED.fullmatch(part)
    if found is None or part == "*":
        return part
    first = 0 if found["all"] else int(found["first"])
    last = 6 if found["all"] else int(found["last"] or (6 if found["step"] else first))
    if last < first:
        raise ValueError(f"{cron!r} is not a schedule: days of the week {part} end before they begin")
    return ",".join(_DAYS[first : last + 1 : int(found["step"] or 1)])
