"""Charts of a report: GPU hours and waste by user, queue or node, and the share of GPUs allocated by hour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from monitor.alert.charts import BarChart, ChartBar, DayRow, HourChart, MessageCharts
from monitor.base.localtime import format_local
from monitor.facts.text import Text
from monitor.report.model import Report, ReportHour, ReportRow

MAX_CHART_BARS = 10
DAY_HOURS = 24
_MIN_HOURS = 0.05  # less is shown as 0.0
_UNKNOWN = "?"  # the day of a time of a broken clock


def report_charts(report: Report, timezone: str) -> MessageCharts:
    """The charts that a report has data for."""
    hours = Text(key="report.chart.hours", values={"zone": timezone})
    using = [row for row in report.rows if row.allocated_hours >= _MIN_HOURS]
    wasting = sorted((row for row in report.rows if row.wasted_hours >= _MIN_HOURS), key=lambda row: -row.wasted_hours)
    bars = (
        usage_chart(using[:MAX_CHART_BARS], f"report.chart.{report.by}"),
        waste_chart(wasting[:MAX_CHART_BARS], f"report.chart.waste.{report.by}"),
    )
    return MessageCharts(bars=bars, hours=HourChart(title=hours, days=_days(report, timezone)))


def usage_chart(rows: Iterable[ReportRow], title: str) -> BarChart:
    """Allocated hours of each row by how they were used."""
    bars = tuple(ChartBar(name=row.name, values=_usage_parts(row)) for row in rows)
    return BarChart(title=Text(key=title), parts=("used", "unused", "unmeasured"), bars=bars)


def waste_chart(rows: Iterable[ReportRow], title: str) -> BarChart:
    """Wasted hours of each row."""
    bars = tuple(ChartBar(name=row.name, values=(row.idle_hours, row.zombie_hours)) for row in rows)
    return BarChart(title=Text(key=title), parts=("idle", "zombie"), bars=bars)


def _usage_parts(row: ReportRow) -> tuple[float, float, float]:
    """Used, unused and unmeasured hours, which add up to those that were allocated."""
    if row.used_hours is None:
        return 0.0, 0.0, row.allocated_hours
    measured = row.used_hours / row.utilization_ratio if row.utilization_ratio else row.allocated_hours
    measured = min(row.allocated_hours, measured)
    return row.used_hours, max(0.0, measured - row.used_hours), row.allocated_hours - measured


def _days(report: Report, timezone: str) -> tuple[DayRow, ...]:
    """Rows of local days, oldest first. An hour that the clocks repeat has the share of both."""
    sums: defaultdict[str, list[list[ReportHour]]] = defaultdict(lambda: [[] for _ in range(DAY_HOURS)])
    for each in report.by_hour:
        day, _, hour = format_local(each.at, timezone, "%Y-%m-%d %H").partition(" ")
        if day != _UNKNOWN:
            sums[day][int(hour)].append(each)
    return tuple(DayRow(day=day, shares=tuple(_share(hour) for hour in hours)) for day, hours in sorted(sums.items()))


def _share(hours: Iterable[ReportHour]) -> float | None:
    known = sum(hour.known_hours for hour in hours)
    return round(sum(hour.allocated_hours for hour in hours) / known, 3) if known else None
