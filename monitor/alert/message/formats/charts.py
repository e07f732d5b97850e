"""Charts as HTML tables with coloured cells: the only charts that every mail client shows, without scripts or images.

Colours are attributes, not styles, because Outlook and pages with a strict policy ignore or forbid the latter. The page
gives the classes colours of its theme.
"""

from __future__ import annotations

from html import escape

from monitor.alert.charts import BarChart, DayRow, HourChart, MessageCharts
from monitor.base.text import clean, shorten
from monitor.i18n import say
from monitor.i18n.figures import percent
from monitor.i18n.notes import sentence

MAX_CHART_NAME_CHARS = 28
_PART_COLOURS = {
    "used": "#2f6fc0", "unused": "#a9c9ee", "unmeasured": "#b4bac2", "idle": "#e0a030", "zombie": "#d03f33",
}  # fmt: skip
_SHARE_COLOURS = ("#e9f1fb", "#b3d0f0", "#6fa5df", "#2f6fc0", "#123a73")
_MIN_SHARE = 0.05  # less looks like nothing
_HOUR_LABELS = (0, 6, 12, 18)
_TABLE = '<table border="0" cellpadding="{padding}" cellspacing="{spacing}" width="100%" class="chart-{kind}">'


def charts_html(charts: MessageCharts, lang: str, heading: str = "h3") -> str:
    """All charts that have data."""
    parts = [(chart.title, _bars(chart, lang)) for chart in charts.bars if chart.bars]
    if charts.hours is not None and charts.hours.days:
        parts.append((charts.hours.title, _hours(charts.hours, lang)))
    return "\n".join(
        f'<div class="report-chart">\n<{heading}>{escape(sentence(title, lang))}</{heading}>\n{body}\n</div>'
        for title, body in parts
    )


def _table(kind: str, rows: str, padding: int = 2, spacing: int = 0) -> str:
    return f"{_TABLE.format(kind=kind, padding=padding, spacing=spacing)}\n{rows}\n</table>"


def _cell(css: str, colour: str, width: str, title: str) -> str:
    return f'<td class="{css}" bgcolor="{colour}" width="{width}" title="{escape(title)}">&nbsp;</td>'


def _bars(chart: BarChart, lang: str) -> str:
    longest = max(sum(bar.values) for bar in chart.bars)
    rows = []
    for bar in chart.bars:
        total = sum(bar.values)
        name = shorten(clean(bar.name), MAX_CHART_NAME_CHARS) if bar.name else say(lang, "report.nobody", {})
        hours = say(lang, "chart.hours", {"hours": f"{total:,.1f}"})
        cells = _parts(chart, bar.values, longest, lang)
        rows.append(
            f'<tr><td width="25%">{escape(name)}</td><td>{_table("bar", f"<tr>{cells}</tr>", 0)}</td>'
            f'<td width="18%" align="right" nowrap>{escape(hours)}</td></tr>'
        )
    return f"{_table('bars', chr(10).join(rows))}\n{_bars_legend(chart, lang)}"


def _parts(chart: BarChart, values: tuple[float, ...], longest: float, lang: str) -> str:
    widths = [round(100 * value / longest) if longest else 0 for value in values]
    shown = "".join(
        _cell(f"bar-{part}", _PART_COLOURS[part], f"{width}%", f"{_part(part, lang)}: {value:,.1f}")
        for part, width, value in zip(chart.parts, widths, values, strict=True)
        if width
    )
    rest = 100 - sum(widths)
    return shown + (f'<td width="{rest}%">&nbsp;</td>' if rest > 0 or not shown else "")


def _part(part: str, lang: str) -> str:
    return say(lang, f"chart.part.{part}", {})


def _bars_legend(chart: BarChart, lang: str) -> str:
    shown = (part for number, part in enumerate(chart.parts) if any(bar.values[number] for bar in chart.bars))
    entries = (
        f'<font color="{_PART_COLOURS[part]}" class="mark-{part}">&#9632;</font>&nbsp;{escape(_part(part, lang))}'
        for part in shown
    )
    return f'<p class="chart-legend">{" &nbsp; ".join(entries)}</p>'


def _hours(chart: HourChart, lang: str) -> str:
    heads = "".join(f'<td colspan="6">{hour:02d}:00</td>' for hour in _HOUR_LABELS)
    rows = "\n".join(_day(row) for row in chart.days)
    table = _table("hours", f"<tr><td></td>{heads}</tr>\n{rows}", 0, 1)
    return f"{table}\n{_hours_legend(lang)}"


def _day(row: DayRow) -> str:
    cells = "".join(
        "<td align=center>·</td>" if share is None else _share_cell(share, f"{row.day} {hour:02d}:00 {percent(share)}")
        for hour, share in enumerate(row.shares)
    )
    return f'<tr><td nowrap width="14%">{escape(row.day[5:])}&nbsp;</td>{cells}</tr>'


def _share_cell(share: float, title: str) -> str:
    level = 0 if share < _MIN_SHARE else 1 + min(len(_SHARE_COLOURS) - 2, int(share * (len(_SHARE_COLOURS) - 1)))
    return _cell(f"share{level}", _SHARE_COLOURS[level], "3.5%", title)


def _hours_legend(lang: str) -> str:
    marks = "".join(
        f'<font color="{colour}" class="mark-share{level}">&#9632;</font>'
        for level, colour in enumerate(_SHARE_COLOURS)
    )
    return f'<p class="chart-legend">0% {marks} 100% &nbsp; · {escape(say(lang, "chart.no-data", {}))}</p>'
