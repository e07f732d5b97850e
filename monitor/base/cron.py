"""Times of day and of the week as crontab writes them. APScheduler does the arithmetic."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERED = re.compile(r"(?:(?P<all>\*)|(?P<first>[0-7])(?:-(?P<last>[0-7]))?)(?:/(?P<step>[1-7]))?")
# Ten years with two leap days: what does not fire in them is a mistake, and looking for it would take for ever.
_TRIED_FROM = datetime(2024, 1, 1, tzinfo=UTC)
_TRIED_UNTIL = datetime(2034, 1, 1, tzinfo=UTC)
_CHANGE = timedelta(hours=2)  # clocks are put forward by an hour, or half of one


def zone(name: str) -> ZoneInfo:
    """Given the name of a time zone, return it. Raise ValueError, in words for a user."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is no time zone: write one such as Asia/Shanghai or UTC") from error


@lru_cache(maxsize=256)
def cron_trigger(cron: str, timezone: str) -> CronTrigger:
    """Given five fields of a crontab, return their trigger. Raise ValueError, in words for a user.

    0 and 7 are Sunday, as in every crontab (APScheduler counts from Monday). When both a day of the month and a day
    of the week are given, both must be met.
    """
    where, fields = zone(timezone), cron.split()
    if len(fields) != 5:
        raise ValueError(
            f"{cron!r} is no schedule: write minute, hour, day, month and day of the week, as in a crontab"
        )
    fields[4] = ",".join(_named_days(part, cron) for part in fields[4].lower().split(","))
    try:
        trigger = CronTrigger.from_crontab(" ".join(fields), where)
        tried = CronTrigger.from_crontab(" ".join(fields), where)
    except ValueError as error:
        raise ValueError(f"{cron!r} is no schedule: {error}") from error
    tried.end_date = _TRIED_UNTIL
    if tried.get_next_fire_time(None, _TRIED_FROM) is None:
        raise ValueError(f"{cron!r} is no schedule: there is no such day")
    return trigger


def fires_in(cron: str, timezone: str, after: float, until: float) -> bool:
    """Return whether the schedule fires later than `after` and no later than `until`.

    A time that the clock on the wall skips counts as it would without the change: 02:30 is 03:30 on that day. The
    trigger sees it only from before the change, so where there was one lately, it is asked from there on.
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
    """Given a part of the field for the day of the week, return it with names in place of numbers."""
    found = _NUMBERED.fullmatch(part)
    if found is None or part == "*":
        return part
    first = 0 if found["all"] else int(found["first"])
    last = 6 if found["all"] else int(found["last"] or (6 if found["step"] else first))
    if last < first:
        raise ValueError(f"{cron!r} is no schedule: days of the week {part} end before they begin")
    return ",".join(_DAYS[first : last + 1 : int(found["step"] or 1)])
