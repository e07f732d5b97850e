"""Cron schedules; APScheduler does the arithmetic."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERED = re.compile(r"(?:(?P<all>\*)|(?P<first>[0-7])(?:-(?P<last>[0-7]))?)(?:/(?P<step>[1-7]))?")
# Ten years with two leap days: a schedule that does not fire within them is a mistake, and the search would not end.
_TRIED_FROM = datetime(2024, 1, 1, tzinfo=UTC)
_TRIED_UNTIL = datetime(2034, 1, 1, tzinfo=UTC)
_CHANGE = timedelta(hours=2)  # daylight saving time moves clocks by an hour or half an hour


def zone(name: str) -> ZoneInfo:
    """Time zone of this name. Raise ValueError with a message for users."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is not a time zone: write one such as Asia/Shanghai or UTC") from error


@lru_cache(maxsize=256)
def cron_trigger(cron: str, timezone: str) -> CronTrigger:
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
        trigger = CronTrigger.from_crontab(" ".join(fields), where)
        tried = CronTrigger.from_crontab(" ".join(fields), where)
    except ValueError as error:
        raise ValueError(f"{cron!r} is not a schedule: {error}") from error
    tried.end_date = _TRIED_UNTIL
    if tried.get_next_fire_time(None, _TRIED_FROM) is None:
        raise ValueError(f"{cron!r} is not a schedule: there is no such day")
    return trigger


def fires_in(cron: str, timezone: str, after: float, until: float) -> bool:
    """Whether the schedule fires after `after` and not later than `until`.

    A local time that daylight saving time skips fires an hour later: 02:30 becomes 03:30 on that day. The trigger
    finds it only when asked from before the change, so after a recent change the search starts there.
    """
    trigger, start = cron_trigger(cron, timezone), datetime.fromtimestamp(after, UTC)
    before = start - _CHANGE
    if before.astimezone(trigger.timezone).utcoffset() != start.astimezone(trigger.timezone).utcoffset():
        start = before
    while True:
        fires: datetime | None = trigger.get_next_fire_time(None, start + timedelta(microseconds=1))
        if fires is None or fires.timestamp() > until:
            return False
        if fires.timestamp() > after:
            return True
        start = fires.astimezone(UTC)


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
