"""Charts of a report: their values, and the tables that mails and pages show."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from monitor.alert.message.formats.charts import MAX_CHART_NAME_CHARS, charts_html
from monitor.report.buckets import HOUR, Bucket
from monitor.report.charts import MAX_CHART_BARS, report_charts
from monitor.report.model import Report, ReportInputs, make_report
from tests.report.reports import EVIL, REPORT, SINCE, UNTIL, bucket, report


def usage(made: Report) -> dict[str | None, tuple[float, ...]]:
    return {bar.name: tuple(round(value, 2) for value in bar.values) for bar in report_charts(made, "UTC").bars[0].bars}


def of_buckets(*buckets: Bucket, hours: tuple[Bucket, ...] = ()) -> Report:
    return make_report(ReportInputs(buckets=buckets, hours=hours), SINCE, UNTIL, "user")


USAGE: list[tuple[str, dict[str, float], tuple[float, float, float]]] = [
    ("all measured", {"allocated": 10, "used": 6, "measured": 10}, (6, 4, 0)),
    ("half measured", {"allocated": 10, "used": 4, "measured": 5}, (4, 1, 5)),
    ("measured as idle", {"allocated": 10, "used": 0, "measured": 10}, (0, 10, 0)),
    ("nothing measured", {"allocated": 10}, (0, 0, 10)),
]


@pytest.mark.parametrize(("name", "hours", "expect"), USAGE, ids=[row[0] for row in USAGE])
def test_allocated_hours_are_used_unused_or_unmeasured(
    name: str, hours: dict[str, float], expect: tuple[float, ...]
) -> None:
    assert usage(of_buckets(bucket("gpu01", "zhang", None, **hours))) == {"zhang": expect}, name


def test_the_largest_are_shown_and_waste_has_its_own_order() -> None:
    buckets = [
        bucket("gpu01", f"user-{n:02d}", allocated=100 - n, used=1, measured=100 - n, idle=n + 1.0) for n in range(30)
    ]
    chart, waste = report_charts(of_buckets(*buckets), "UTC").bars
    assert [bar.name for bar in chart.bars] == [f"user-{n:02d}" for n in range(MAX_CHART_BARS)]
    assert [bar.name for bar in waste.bars] == [f"user-{29 - n:02d}" for n in range(MAX_CHART_BARS)]
    assert waste.bars[0].values == (30.0, 0.0)


def test_hours_are_those_of_the_time_zone_and_a_gap_is_unknown() -> None:
    hours = tuple(
        Bucket(hour=int(SINCE) + n * HOUR, allocated=n, free=24 - n, unknown=99.0) for n in range(24) if n != 5
    )
    first, second = report_charts(of_buckets(hours=hours), "Asia/Shanghai").hours.days  # type: ignore[union-attr]
    assert (first.day, second.day) == ("2025-11-09", "2025-11-10")  # since 2025-11-09 02:00 UTC
    shares = (*first.shares, *second.shares)
    assert shares[10:34] == tuple(None if n == 5 else round(n / 24, 3) for n in range(24))
    assert set(shares[:10] + shares[34:]) == {None}


def test_an_hour_that_the_clocks_repeat_has_both() -> None:
    start = 1_761_433_200  # 2025-10-25 23:00 UTC: in Berlin 02:00 comes at 00:00 and at 01:00 UTC
    hours = tuple(Bucket(hour=start + n * HOUR, allocated=n, free=3 - n) for n in range(4))
    days = report_charts(of_buckets(hours=hours), "Europe/Berlin").hours.days  # type: ignore[union-attr]
    assert [day.day for day in days] == ["2025-10-26"]
    assert days[0].shares[:5] == (None, 0.0, 0.5, 1.0, None)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("by", ["user", "queue", "node"])
def test_tables_need_no_styles_and_names_are_escaped(by: Any, lang: str) -> None:
    text = charts_html(report_charts(report(by), "UTC"), lang)
    assert not re.findall(r"style=|<script|<img|http", text)
    assert len(text.encode()) < 40_000
    assert ("&lt;script&gt;" in text) == (by == "user")
    assert "report.chart" not in text
    for widths in re.findall(r'class="chart-bar">\n<tr>(.*?)</tr>', text):
        assert sum(map(int, re.findall(r'width="(\d+)%"', widths))) <= 101


def test_nothing_is_drawn_of_nothing() -> None:
    assert charts_html(report_charts(of_buckets(), "UTC"), "en") == ""


def test_long_names_are_shortened() -> None:
    text = charts_html(report_charts(of_buckets(bucket("gpu01", "u" * 300, allocated=1.0)), "UTC"), "en")
    assert max(map(len, re.findall(r"u{5,}", text))) < MAX_CHART_NAME_CHARS


def test_a_report_of_an_older_daemon_has_no_hours() -> None:
    body = msgspec.json.encode(REPORT)
    older = {name: value for name, value in msgspec.json.decode(body).items() if name != "by_hour"}
    made = msgspec.convert(older, Report)
    assert report_charts(made, "UTC").hours.days == ()  # type: ignore[union-attr]
    assert EVIL in {row.name for row in made.rows}
