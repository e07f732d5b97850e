"""Charts of messages: bars whose parts add up, hours whose colour is their share, and nothing for what is unknown."""

from __future__ import annotations

import re

import pytest

from monitor.alert.charts import BarChart, ChartBar, DayRow, HourChart, MessageCharts
from monitor.alert.message.formats.charts import MAX_CHART_NAME_CHARS, charts_html
from monitor.facts.text import Text

TITLE = Text(key="report.title")


def of_bars(*bars: ChartBar) -> MessageCharts:
    return MessageCharts(bars=(BarChart(title=TITLE, parts=("used", "idle"), bars=bars),))


def of_hours(*shares: float | None) -> MessageCharts:
    return MessageCharts(hours=HourChart(title=TITLE, days=(DayRow(day="2026-01-31", shares=shares),)))


def widths(text: str) -> list[list[int]]:
    """Widths of the cells of each bar in percent."""
    rows = re.findall(r'class="chart-bar">\n<tr>(.*?)</tr>', text)
    return [[int(width) for width in re.findall(r'width="(\d+)%"', row)] for row in rows]


BARS: list[tuple[str, tuple[tuple[float, ...], ...], list[list[int]]]] = [
    ("the longest bar fills the width", ((6.0, 2.0), (2.0, 0.0)), [[75, 25], [25, 75]]),
    ("what is too small has no cell", ((1000.0, 1.0),), [[100]]),
    ("nothing at all", ((0.0, 0.0),), [[100]]),
]


@pytest.mark.parametrize(("name", "values", "expect"), BARS, ids=[row[0] for row in BARS])
def test_parts_of_bars(name: str, values: tuple[tuple[float, ...], ...], expect: list[list[int]]) -> None:
    text = charts_html(of_bars(*(ChartBar(name="zhang", values=one) for one in values)), "en")
    assert widths(text) == expect


def test_the_legend_names_only_parts_that_occur() -> None:
    text = charts_html(of_bars(ChartBar(name="zhang", values=(1.0, 0.0))), "en")
    assert 'class="mark-used"' in text
    assert 'class="mark-idle"' not in text


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_names_are_escaped_shortened_or_said_to_be_unknown(lang: str) -> None:
    bars = [ChartBar(name=name, values=(1.0, 0.0)) for name in ("<b>", "u" * 300, None)]
    text = charts_html(of_bars(*bars), lang)
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert max(map(len, re.findall(r"u{5,}", text))) <= MAX_CHART_NAME_CHARS
    assert "report.nobody" not in text


@pytest.mark.parametrize(
    ("share", "expect"), [(0.0, "share0"), (0.04, "share0"), (0.05, "share1"), (0.5, "share3"), (1.0, "share4")]
)
def test_the_colour_of_an_hour_is_its_share(share: float, expect: str) -> None:
    text = charts_html(of_hours(share), "en")
    assert re.findall(r'<td class="(share\d)"', text) == [expect]


def test_an_unknown_hour_has_no_colour() -> None:
    text = charts_html(of_hours(None, 0.5), "en")
    assert re.findall(r'<td class="(share\d)"', text) == ["share3"]
    assert "<td align=center>·</td>" in text
    assert "2026-01-31 01:00" in text, "the hour is that of its place"


def test_charts_without_data_are_left_out() -> None:
    assert charts_html(MessageCharts(bars=(BarChart(title=TITLE, parts=(), bars=()),)), "en") == ""
