from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.alert.matchers import parse_matcher
from monitor.alert.windows import MaintenanceWindow, QuietHours, matching_window, open_windows
from monitor.base.cron import cron_trigger

SHANGHAI, BERLIN = "Asia/Shanghai", "Europe/Berlin"


def at(local: str, timezone: str = SHANGHAI) -> float:
    return datetime.fromisoformat(local).replace(tzinfo=ZoneInfo(timezone)).timestamp()


@pytest.mark.parametrize(
    ("cron", "hours", "timezone", "local", "opened"),
    [
        ("0 2 * * *", 2, SHANGHAI, "2025-06-19 01:59:59", False),
        ("0 2 * * *", 2, SHANGHAI, "2025-06-19 02:00:00", True),
        ("0 2 * * *", 2, SHANGHAI, "2025-06-19 03:59:59", True),
        ("0 2 * * *", 2, SHANGHAI, "2025-06-19 04:00:00", False),
        ("0 23 * * *", 3, SHANGHAI, "2025-06-20 01:30:00", True),  # over midnight
        ("0 2 * * *", 2, "UTC", "2025-06-19 10:30:00", True),  # 02:30 UTC in Shanghai
        ("0 2 * * 0", 2, SHANGHAI, "2025-06-22 03:00:00", True),  # 0 is Sunday
        ("0 2 * * 0", 2, SHANGHAI, "2025-06-23 03:00:00", False),
        ("0 2 * * 7", 2, SHANGHAI, "2025-06-22 03:00:00", True),  # and so is 7
        ("0 2 * * 1-5", 2, SHANGHAI, "2025-06-20 03:00:00", True),  # Friday
        ("0 2 * * 1-5", 2, SHANGHAI, "2025-06-21 03:00:00", False),  # Saturday
        ("0 2 * * 5-7", 2, SHANGHAI, "2025-06-22 03:00:00", True),
        ("0 2 * * */2", 2, SHANGHAI, "2025-06-22 03:00:00", True),  # from Sunday on
        ("0 2 * * 1,SAT", 2, SHANGHAI, "2025-06-21 03:00:00", True),
        ("0 2 * * mon-fri", 2, SHANGHAI, "2025-06-21 03:00:00", False),
        ("0 2 1 * *", 2, SHANGHAI, "2025-07-01 03:00:00", True),
        ("0 0 29 2 *", 2, SHANGHAI, "2028-02-29 01:00:00", True),
        ("0 0 1 1 *", 24 * 400, SHANGHAI, "2025-06-19 03:00:00", True),  # longer than its own interval
        # Berlin skips 02:30 on this day: the window opens an hour later, with the same duration.
        ("30 2 * * *", 2, BERLIN, "2025-03-30 01:59:00", False),
        ("30 2 * * *", 2, BERLIN, "2025-03-30 03:45:00", True),
        ("30 2 * * *", 2, BERLIN, "2025-03-30 05:45:00", False),
        # Berlin has 02:30 twice on this day: the window opens at the first.
        ("30 2 * * *", 1, BERLIN, "2025-10-26 02:45:00", True),
    ],
)
def test_a_window_is_open_for_its_duration(cron: str, hours: float, timezone: str, local: str, opened: bool) -> None:
    assert (
        MaintenanceWindow(cron, hours * 3600.0, timezone).open(at(local, BERLIN if timezone == BERLIN else SHANGHAI))
        is opened
    )


@pytest.mark.parametrize(
    ("cron", "timezone", "says"),
    [
        ("0 2 * *", "UTC", "write minute, hour, day, month and day of the week"),
        ("61 2 * * *", "UTC", "is not a schedule"),
        ("a 2 * * *", "UTC", "is not a schedule"),
        ("0 2 * * 8", "UTC", "is not a schedule"),
        ("0 2 * * 5-1", "UTC", "end before they begin"),
        ("0 2 30 2 *", "UTC", "there is no such day"),
        ("0 2 * * *", "Mars/Olympus", "is not a time zone"),
        ("0 2 * * *", "../etc/passwd", "is not a time zone"),
        ("0 2 * * *", "", "is not a time zone"),
    ],
)
def test_what_is_no_schedule_is_refused_in_words(cron: str, timezone: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        MaintenanceWindow(cron, 60.0, timezone)


def test_a_window_needs_a_duration() -> None:
    with pytest.raises(ValueError, match="duration"):
        MaintenanceWindow("0 2 * * *", 0.0)


def test_a_window_is_about_what_meets_its_matchers() -> None:
    windows = [
        MaintenanceWindow("0 2 * * *", 3600.0, matchers=(parse_matcher("node=~gpu.*"),)),
        MaintenanceWindow("0 3 * * *", 3600.0),
    ]
    at_two, at_three = (open_windows(windows, at(f"2025-06-19 0{hour}:30", "UTC")) for hour in (2, 3))
    assert matching_window({"node": "gpu1"}, at_two) is windows[0]
    assert matching_window({"node": "cpu1"}, at_two) is None
    assert matching_window({"node": "cpu1"}, at_three) is windows[1]


@example("15 2 31 * *", BERLIN, 475_982_101)  # opens at 02:15 on a day that skips it
@given(
    st.sampled_from(["0 * * * *", "30 2 * * *", "*/7 1-3 * * 0", "15 2 31 * *"]),
    st.sampled_from(["Australia/Lord_Howe", BERLIN, "America/St_Johns", "UTC", "Africa/Casablanca"]),
    st.integers(min_value=-86400, max_value=4_000_000_000),
)
def test_no_moment_is_too_odd_for_a_window(cron: str, timezone: str, now: int) -> None:
    start = datetime.fromtimestamp(now, ZoneInfo(timezone))
    fires = cron_trigger(cron, timezone).get_next_fire_time(None, start)
    assert fires is not None
    opens = fires.timestamp()
    window = MaintenanceWindow(cron, 600.0, timezone)
    assert opens >= now
    assert window.open(opens)
    assert window.open(opens + 599.0)


@pytest.mark.parametrize(
    ("start", "end", "local", "quiet"),
    [
        ("22:00", "08:00", "2025-06-19 21:59:59", False),
        ("22:00", "08:00", "2025-06-19 22:00:00", True),
        ("22:00", "08:00", "2025-06-20 00:00:00", True),
        ("22:00", "08:00", "2025-06-20 07:59:59", True),
        ("22:00", "08:00", "2025-06-20 08:00:00", False),
        ("12:30", "14:00", "2025-06-19 12:29:00", False),
        ("12:30", "14:00", "2025-06-19 13:00:00", True),
        ("12:30", "14:00", "2025-06-19 14:00:00", False),
        ("00:00", "6:00", "2025-06-19 00:00:00", True),
        ("22:00", "00:00", "2025-06-19 23:59:59", True),
        ("22:00", "00:00", "2025-06-20 00:00:00", False),
    ],
)
def test_quiet_hours_go_by_the_clock_on_the_wall(start: str, end: str, local: str, quiet: bool) -> None:
    assert QuietHours(start, end, SHANGHAI).contains(at(local)) is quiet


@pytest.mark.parametrize(("night", "hours"), [("2025-03-29", 9), ("2025-10-25", 11), ("2025-06-19", 10)])
def test_quiet_hours_end_at_eight_when_the_clocks_change(night: str, hours: int) -> None:
    quiet = QuietHours("22:00", "08:00", BERLIN)
    began = at(f"{night} 22:00", BERLIN)
    length = timedelta(hours=hours).total_seconds()
    assert not quiet.contains(began - 1)
    assert all(quiet.contains(began + second) for second in range(0, int(length), 300))
    assert not quiet.contains(began + length)


@pytest.mark.parametrize(
    ("start", "end", "timezone", "says"),
    [
        ("22", "08:00", "UTC", "'22' is not a time of day"),
        ("22:00", "24:00", "UTC", "'24:00' is not a time of day"),
        ("22:00", "08:60", "UTC", "is not a time of day"),
        ("22:00", "22:00", "UTC", "have no length"),
        ("22:00", "08:00", "Beijing", "is not a time zone"),
    ],
)
def test_what_are_no_quiet_hours_is_refused_in_words(start: str, end: str, timezone: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        QuietHours(start, end, timezone)
