"""Texts of messages and summaries about a report, as keys with their values."""

from __future__ import annotations

from monitor.base.localtime import local_minute
from monitor.facts.text import Text
from monitor.i18n import Value
from monitor.report.cost_text import MIN_HOURS, cost_texts, wasted_amount
from monitor.report.kept import kept_texts
from monitor.report.model import Report, ReportRow

Values = dict[str, Value]
UNKNOWN = "?"
MAX_MESSAGE_ROWS = 5


def message_texts(report: Report, timezone: str = "UTC") -> tuple[Text, ...]:
    """Texts of a message about a report, the title first: totals, and the largest rows."""
    total = report.total
    values: Values = {"allocated": format_hours(total.allocated_hours)}
    texts = [
        with_waste("report.told", values, report, total),
        *total_texts(total),
        *cost_texts(report),
        *used_text(total),
    ]
    if total.cleaned_bytes:
        texts.append(Text(key="report.told.cleaned", values={"size": total.cleaned_bytes}))
    kept = kept_texts(report.kept, timezone)
    return (*texts, *incomplete_cleanup(report, timezone), *kept, *row_texts(report))


def used_text(total: ReportRow) -> tuple[Text, ...]:
    """Mean utilisation, if it is known."""
    if total.utilization_ratio is None:
        return ()
    values: Values = {"utilization": total.utilization_ratio, "used": format_hours(total.used_hours or 0.0)}
    return (Text(key="report.told.used", values=values),)


def row_texts(report: Report) -> tuple[Text, ...]:
    """The largest rows, and the sum of the others."""
    texts = list[Text]()
    named = [row for row in report.rows if row.name is not None and (row.allocated_hours or row.zombie_hours)]
    for row in named[:MAX_MESSAGE_ROWS]:
        ratio: Value = UNKNOWN if row.utilization_ratio is None else row.utilization_ratio
        values: Values = {"name": row.name or "", "allocated": format_hours(row.allocated_hours), "utilization": ratio}
        texts.append(with_waste("report.told.row", values, report, row))
    if rest := named[MAX_MESSAGE_ROWS:]:
        sums: Values = {
            "allocated": format_hours(sum(row.allocated_hours for row in rest)),
            "wasted": format_hours(sum(row.wasted_hours for row in rest)),
        }
        texts.append(Text(key="report.told.rest", values={"count": len(rest), **sums}))
    return tuple(texts)


def format_hours(value: float) -> str:
    """GPU hours with one decimal."""
    return f"{value:,.1f}"


def with_waste(key: str, values: Values, report: Report, row: ReportRow) -> Text:
    """A text that states the waste of a row and, with prices, its cost."""
    values = values | {"wasted": format_hours(row.wasted_hours)}
    if report.currency is None or row.wasted_hours < MIN_HOURS:
        return Text(key=key, values=values)
    cost = wasted_amount(report, row)
    return Text(key=f"{key}.unpriced", values=values) if cost is None else Text(f"{key}.cost", values | {"cost": cost})


def total_texts(total: ReportRow) -> list[Text]:
    """What became of all GPU hours, and what was wasted."""
    hours = _hours(total, "allocated", "free", "faulty", "unknown")
    whole: Values = {
        "hours": format_hours(total.hours),
        "share": total.allocated_hours / total.hours if total.hours else 0.0,
    }
    return [Text(key="report.hours", values=whole | hours), waste_text(total)]


def waste_text(total: ReportRow) -> Text:
    """Wasted hours, and why they are."""
    return Text(key="report.waste", values=_hours(total, "wasted", "idle", "zombie"))


def _hours(row: ReportRow, *names: str) -> Values:
    return {name: format_hours(getattr(row, f"{name}_hours")) for name in names}


def incomplete_cleanup(report: Report, timezone: str) -> tuple[Text, ...]:
    """The hint that older cleanup runs are no longer stored, if the report covers them."""
    if report.total.cleaned_bytes is None or report.cleaned_since <= report.since:
        return ()
    return (Text(key="report.cleaned-since", values={"start": local_minute(report.cleaned_since, timezone)}),)
