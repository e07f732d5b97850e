"""The digest of a team: the queues that a pattern matches, by queue and by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from monitor.alert.charts import BarChart, MessageCharts
from monitor.base.localtime import format_local
from monitor.facts.text import Text
from monitor.i18n import Value
from monitor.report.charts import usage_chart, waste_chart
from monitor.report.cost_text import cost_texts
from monitor.report.model import Report, ReportInputs, ReportRow, make_report
from monitor.report.texts import format_hours, row_texts, used_text, waste_text, with_waste

MAX_CHART_DAYS = 14  # more does not fit into a mail


@dataclass(frozen=True)
class TeamReport:
    """Usage of the queues of a team. `days` are rows of local days, oldest first; a day without usage has none."""

    team: str
    report: Report
    days: tuple[ReportRow, ...]


def make_team_report(team: str, inputs: ReportInputs, since: float, until: float, timezone: str) -> TeamReport:
    """Digest of a team from the hours of its queues."""
    by_day = [
        msgspec.structs.replace(bucket, queue=format_local(bucket.hour, timezone, "%Y-%m-%d"))
        for bucket in inputs.buckets
    ]
    days = make_report(replace(inputs, buckets=by_day, events=()), since, until, "queue").rows
    report = make_report(inputs, since, until, "queue")
    return TeamReport(team, report, tuple(sorted(days, key=lambda row: row.name or "")))


def team_texts(digest: TeamReport) -> tuple[Text, ...]:
    """Texts of the message about a team, the title first."""
    report, total = digest.report, digest.report.total
    values: dict[str, Value] = {"team": digest.team, "allocated": format_hours(total.allocated_hours)}
    texts = [with_waste("report.team", values, report, total), waste_text(total), *cost_texts(report)]
    texts += used_text(total)
    return (*texts, *(row_texts(report) if len(report.rows) > 1 else ()))


def team_charts(digest: TeamReport) -> MessageCharts:
    """Charts of a team: by day, and by queue if it has several."""
    rows, days = digest.report.rows, [_without_year(row) for row in digest.days[-MAX_CHART_DAYS:]]
    charts = [*_charts(days, "day"), *(_charts(rows, "queue") if len(rows) > 1 else ())]
    return MessageCharts(bars=tuple(charts))


def _without_year(row: ReportRow) -> ReportRow:
    """The row with a name that fits beside a bar on a phone."""
    return msgspec.structs.replace(row, name=(row.name or "").partition("-")[2])


def _charts(rows: Sequence[ReportRow], of: str) -> list[BarChart]:
    return [usage_chart(rows, f"report.chart.{of}"), waste_chart(rows, f"report.chart.waste.{of}")]
