"""Schedules when the clocks change: nothing runs twice, and nothing is left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.base.cron import cron_trigger, fires_in, next_run

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def runs(cron: str, timezone: str, start: str, count: int) -> list[str]:
    """The next runs after a time in UTC, as the scheduler asks for them."""
    trigger, now = cron_trigger(cron, timezone), datetime.fromisoformat(start).replace(tzinfo=UTC)
    found: list[str] = []
    fired: datetime | None = None
    for _ in range(count):
        fired = trigger.get_next_fire_time(fired, now)
        assert fired is not None
        found.append(f"{fired:%d %H:%M %Z}")
        now = fired.astimezone(UTC) + timedelta(milliseconds=5)
    return found


@pytest.mark.parametrize(
    ("name", "cron", "timezone", "start", "expect"),
    [
        ("every night at three in Beijing", "0 3 * * *", "Asia/Shanghai", "2026-11-18 18:00",
         ["19 03:00 CST", "20 03:00 CST"]),
        # Berlin goes from 02:00 to 03:00 on 29 March 2026, and from 03:00 back to 02:00 on 25 October.
        ("skipped", "30 2 * * *", BERLIN, "2026-03-28 12:00", ["29 03:30 CEST", "30 02:30 CEST"]),
        ("just after", "0 3 * * *", BERLIN, "2026-03-28 12:00", ["29 03:00 CEST", "30 03:00 CEST"]),
        ("just before", "59 1 * * *", BERLIN, "2026-03-28 12:00", ["29 01:59 CET", "30 01:59 CEST"]),
        ("skipped onto itself", "0 2,3 * * *", BERLIN, "2026-03-28 12:00", ["29 03:00 CEST", "30 02:00 CEST"]),
        ("repeated", "30 2 * * *", BERLIN, "2026-10-24 12:00", ["25 02:30 CEST", "26 02:30 CET"]),
        ("repeated, several hours", "0 1-3 * * *", BERLIN, "2026-10-24 12:00",
         ["25 01:00 CEST", "25 02:00 CEST", "25 03:00 CET", "26 01:00 CET"]),
        ("after the repeated hour", "0 3 * * *", BERLIN, "2026-10-24 12:00", ["25 03:00 CET", "26 03:00 CET"]),
        ("every hour, skipped", "0 * * * *", BERLIN, "2026-03-28 23:30",
         ["29 01:00 CET", "29 03:00 CEST", "29 04:00 CEST"]),
        ("every hour, repeated", "0 * * * *", BERLIN, "2026-10-24 23:30",
         ["25 02:00 CEST", "25 02:00 CET", "25 03:00 CET"]),
        # New York goes from 02:00 to 03:00 on 8 March 2026, and from 02:00 back to 01:00 on 1 November.
        ("skipped", "30 2 * * *", NEW_YORK, "2026-03-07 12:00", ["08 03:30 EDT", "09 02:30 EDT"]),
        ("repeated", "30 1 * * *", NEW_YORK, "2026-10-31 12:00", ["01 01:30 EDT", "02 01:30 EST"]),
        ("every half hour", "*/30 * * * *", NEW_YORK, "2026-11-01 05:15",
         ["01 01:30 EDT", "01 01:00 EST", "01 01:30 EST", "01 02:00 EST"]),
        ("on Sundays", "0 1 * * 0", NEW_YORK, "2026-10-31 12:00", ["01 01:00 EDT", "08 01:00 EST"]),
    ],
)  # fmt: skip
def test_no_run_is_lost_or_doubled(name: str, cron: str, timezone: str, start: str, expect: list[str]) -> None:
    assert runs(cron, timezone, start, len(expect)) == expect, name


def test_a_run_in_the_repeated_hour_is_not_made_up() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()  # 02:30 CEST
    hour_later = first + 3600  # 02:30 CET
    assert fires_in("30 2 * * *", BERLIN, first - 60, first)
    assert not fires_in("30 2 * * *", BERLIN, first, hour_later + 60)


def test_a_restart_shortly_after_the_change_makes_up_a_skipped_run() -> None:
    change = datetime(2026, 3, 29, 1, 0, tzinfo=UTC).timestamp()  # 02:00 CET becomes 03:00 CEST
    assert fires_in("30 2 * * *", BERLIN, change + 60, change + 1800)
    assert not fires_in("30 2 * * *", BERLIN, change + 1800, change + 3600)


@given(
    st.sampled_from(["30 2 * * *", "0 3 * * *", "30 1 * * *", "15 0 * * *"]),
    st.sampled_from([BERLIN, NEW_YORK, "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Shanghai"]),
    st.integers(min_value=1_400_000_000, max_value=2_000_000_000),
)
def test_a_nightly_schedule_runs_once_on_each_day(cron: str, timezone: str, start: int) -> None:
    days, at = [], float(start)
    for _ in range(4):
        found = next_run(cron, timezone, at)
        assert found is not None
        assert found > at
        assert fires_in(cron, timezone, at, found)
        days.append(datetime.fromtimestamp(found, ZoneInfo(timezone)).date())
        at = found
    assert days == [days[0] + timedelta(days=number) for number in range(4)]
