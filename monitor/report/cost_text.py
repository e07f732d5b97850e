"""Texts and cells about the cost of a report."""

from __future__ import annotations

from monitor.facts.prices import format_amount, format_price
from monitor.facts.text import Text
from monitor.i18n import Value
from monitor.report.model import Report, ReportRow

COST_FIELDS = ("cost", "wasted_cost", "unpriced_hours", "unpriced_wasted_hours")  # of a row
COST_COLUMNS = COST_FIELDS[:2]
MAX_NAMED_MODELS = 3
MIN_HOURS = 0.05  # less is shown as 0.0
AT_LEAST = "\N{GREATER-THAN OR EQUAL TO}"


def cost_texts(report: Report) -> tuple[Text, ...]:
    """Cost and waste in total, and what has no price; nothing without prices."""
    total, texts = report.total, list[Text]()
    if report.currency is not None and total.cost is not None:
        values: dict[str, Value] = {"cost": amount(total.cost, total.unpriced_hours, report.currency)}
        wasted = wasted_amount(report, total)
        key = "report.cost" if wasted is not None else "report.cost.waste-unknown"
        texts.append(Text(key=key, values=values | ({"wasted": wasted} if wasted is not None else {})))
    return (*texts, *unpriced_texts(report))


def unpriced_texts(report: Report) -> tuple[Text, ...]:
    """GPU hours that the cost does not include, and why."""
    texts = list[Text]()
    unpriced = [each for each in report.unpriced if each.hours >= MIN_HOURS]
    named = [f"{each.model} ({each.hours:,.1f} h)" for each in unpriced if each.model is not None]
    if named:
        more = ("…",) if len(named) > MAX_NAMED_MODELS else ()
        texts.append(Text(key="report.unpriced", values={"models": ", ".join((*named[:MAX_NAMED_MODELS], *more))}))
    texts += [
        Text(key="report.unpriced-share", values={"hours": f"{each.hours:,.1f}"})
        for each in unpriced
        if each.model is None
    ]
    return tuple(texts)


def wasted_amount(report: Report, row: ReportRow) -> str | None:
    """Cost of what a row wasted, such as `12.50 CNY`; None if there are no prices for it."""
    if report.currency is None or row.wasted_cost is None:
        return None
    return amount(row.wasted_cost, row.unpriced_wasted_hours, report.currency)


def amount(value: float, unpriced_hours: float, currency: str) -> str:
    """An amount with its currency; a lower bound if hours without a price are missing from it."""
    return _bound(unpriced_hours) + format_price(value, currency)


def cost_cell(row: ReportRow, name: str) -> str | None:
    """Cell of one of COST_COLUMNS, without the currency; None if it is unknown."""
    value = row.cost if name == "cost" else row.wasted_cost
    unpriced = row.unpriced_hours if name == "cost" else row.unpriced_wasted_hours
    return None if value is None else _bound(unpriced) + format_amount(value)


def _bound(unpriced_hours: float) -> str:
    return AT_LEAST if unpriced_hours >= MIN_HOURS else ""
