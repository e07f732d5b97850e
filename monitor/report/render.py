"""Renders a report for the terminal, as JSON, CSV, a standalone HTML page, or a message."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TextIO

import jinja2
import msgspec
from markupsafe import Markup

from monitor.alert.message.formats.charts import charts_html
from monitor.base.localtime import local_minute
from monitor.base.logs import printable
from monitor.base.units import format_ratio, format_size
from monitor.i18n import CATALOGS, Value, code, say
from monitor.i18n.figures import duration
from monitor.report.charts import report_charts
from monitor.report.cost_text import COST_COLUMNS, COST_FIELDS, cost_cell, cost_texts
from monitor.report.kept import kept_texts
from monitor.report.model import IncidentCount, Report, ReportRow
from monitor.report.texts import UNKNOWN, format_hours, incomplete_cleanup, total_texts

Format = Literal["table", "json", "csv", "html"]
Values = dict[str, Value]
FORMATS: tuple[Format, ...] = ("table", "json", "csv", "html")
PLAIN_WIDTH_COLUMNS = 140
VALUE_COLUMNS = ("allocated", "used", "utilization", "wasted", "idle", "zombie", "disk", "cleaned")
NODE_ONLY_COLUMNS = ("faulty", "free", "unknown")  # hours without an owner
# Spreadsheets take text with these prefixes for a formula; East Asian ones also the full-width characters.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # noqa: RUF001  # see above

PAGE = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).from_string(
    """\
<!doctype html>
<html lang="{{ lang }}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{ title }}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
:root { color-scheme: light dark }
table { border-collapse: collapse } th, td { padding: .2em .8em; text-align: right; border-bottom: 1px solid #8884 }
.chart-bars, .chart-hours { max-width: 45em } .chart-legend, .chart-hours { font-size: .8em }
.chart-hours { border-collapse: separate } .chart-legend font { font-size: 1.4em }
:is(.chart-bars, .chart-hours, .chart-bar) td { padding: 0 .2em; text-align: left; border: 0 }
.chart-bars td[align] { text-align: right } .chart-bar td { font-size: .8em }
th { font-weight: 600 } .t { text-align: left } tfoot td { font-weight: 600 } .w { overflow-x: auto }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for line in lines %}
<p>{{ line }}</p>
{% endfor %}
{{ charts }}
{% for table in tables %}
<h2>{{ table.title }}</h2>
{% if table.rows %}
<div class="w"><table>
<thead><tr>
{%- for name in table.columns %}<th scope="col"{% if loop.index <= table.texts %} class="t"{% endif %}>{{ name }}</th>
{%- endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}
<tr>{% for cell in row %}<td{% if loop.index <= table.texts %} class="t"{% endif %}>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
{% if table.total %}
<tfoot><tr>{% for cell in table.total %}<td{% if loop.index <= table.texts %} class="t"{% endif %}>{{ cell }}</td>
{%- endfor %}</tr></tfoot>
{% endif %}
</table></div>
{% else %}
<p>{{ table.note }}</p>
{% endif %}
{% endfor %}
</body>
</html>
"""
)


@dataclass(frozen=True)
class ReportTable:
    """A table with a title. The first `texts` columns are text, the rest numbers. `note` replaces missing rows."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    total: tuple[str, ...] = ()
    note: str = ""


def summary_lines(report: Report, lang: str, timezone: str = "UTC") -> tuple[str, ...]:
    """The summary of a report in sentences."""
    values: Values = {
        "start": local_minute(report.since, timezone),
        "end": local_minute(report.until, timezone),
        "watched": report.watched_seconds,
    }
    period = say(lang, "report.period", values | {"seconds": report.until - report.since})
    texts = (
        *total_texts(report.total),
        *cost_texts(report),
        *(incomplete_cleanup(report, timezone) if report.by != "queue" else ()),
        *kept_texts(report.kept, timezone),
    )
    return (period, *(say(lang, text.key, text.values) for text in texts))


def report_tables(report: Report, lang: str, timezone: str = "UTC") -> tuple[ReportTable, ...]:
    """Tables of a report: by user, queue or node, and the incidents."""
    return _rows_table(report, lang), _incidents_table(report, lang, timezone)


def print_tables(report: Report, lang: str, file: TextIO, timezone: str = "UTC") -> None:
    """Print a report to `file`, with the width of the terminal if it is one."""
    from rich.console import Console  # imported here: the daemon does not need it
    from rich.table import Table
    from rich.text import Text

    width = None if file.isatty() else PLAIN_WIDTH_COLUMNS
    console = Console(file=file, width=width, markup=False, highlight=False, emoji=False)
    console.print(Text(say(lang, "report.title", {}), style="bold"))
    for line in summary_lines(report, lang, timezone):
        console.print(Text(line))
    for table in report_tables(report, lang, timezone):
        console.print()
        console.print(Text(table.title, style="bold"))
        if not table.rows:
            console.print(Text(f"  {table.note}"))
            continue
        rich_table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
        for index, name in enumerate(table.columns):
            rich_table.add_column(Text(name), justify="left" if index < table.texts else "right", overflow="fold")
        for row in (*table.rows, *([table.total] if table.total else [])):
            rich_table.add_row(*(Text(cell) for cell in row), style="bold" if row is table.total else None)
        console.print(rich_table)


def as_json(report: Report) -> str:
    """A report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report)).decode() + "\n"


def as_csv(report: Report) -> str:
    """The rows of a report as CSV for spreadsheets, without totals. No cell is a formula."""
    without = ("name", *(() if report.currency else COST_FIELDS))
    columns = [name for name in ReportRow.__struct_fields__ if name not in without]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow((report.by, *columns))
    for row in report.rows:
        values = (getattr(row, name) for name in columns)
        cells = ("" if value is None else round(value, 4) for value in values)
        writer.writerow((escape_formula(printable(row.name or "")), *cells))
    return out.getvalue()


def as_html(report: Report, lang: str, timezone: str = "UTC") -> str:
    """A report as a standalone HTML page."""
    title = say(lang, "report.title", {})
    lines, tables = summary_lines(report, lang, timezone), report_tables(report, lang, timezone)
    charts = Markup(charts_html(report_charts(report, timezone), lang, "h2"))  # noqa: S704  # all names are escaped
    return PAGE.render(lang=lang, title=title, lines=lines, tables=tables, charts=charts)


def escape_formula(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _rows_table(report: Report, lang: str) -> ReportTable:
    columns = (
        *VALUE_COLUMNS,
        *(COST_COLUMNS if report.currency else ()),
        *(NODE_ONLY_COLUMNS if report.by == "node" else ()),
    )
    shown = [row for row in report.rows if row.name is not None or _has_values(row)]
    if report.by == "queue":  # the disk space of queues is unknown
        columns = tuple(name for name in columns if name not in ("disk", "cleaned"))
    unnamed, headings = say(lang, "report.nobody", {}), {"currency": report.currency or ""}
    return ReportTable(
        title=say(lang, f"report.by.{report.by}", {}),
        columns=tuple(say(lang, f"report.column.{name}", headings) for name in (report.by, *columns)),
        rows=tuple((printable(row.name or unnamed), *_cells(row, columns)) for row in shown),
        total=(say(lang, "report.total", {}), *_cells(report.total, columns)),
        note=say(lang, "report.empty", {}),
    )


def _has_values(row: ReportRow) -> bool:
    """Whether a row without a name is worth showing: hours without a holder are in the totals."""
    return bool(row.allocated_hours or row.zombie_hours or row.disk_bytes or row.cleaned_bytes)


def _cells(row: ReportRow, columns: tuple[str, ...]) -> list[str]:
    formats: dict[str, Callable[[], str | None]] = {
        "used": lambda: None if row.used_hours is None else format_hours(row.used_hours),
        "utilization": lambda: None if row.utilization_ratio is None else format_ratio(row.utilization_ratio),
        "disk": lambda: None if row.disk_bytes is None else format_size(row.disk_bytes),
        "cleaned": lambda: None if row.cleaned_bytes is None else format_size(row.cleaned_bytes),
        **{name: partial(cost_cell, row, name) for name in COST_COLUMNS},
    }
    cells = (formats[name]() if name in formats else format_hours(getattr(row, f"{name}_hours")) for name in columns)
    return [UNKNOWN if cell is None else cell for cell in cells]


def _incidents_table(report: Report, lang: str, timezone: str) -> ReportTable:
    later = report.incidents_since > report.since
    start = local_minute(report.incidents_since, timezone)
    title = say(lang, "report.incidents-since" if later else "report.incidents", {"start": start})
    columns = ("rule", "cause", "fired", "resolved", "mean")
    return ReportTable(
        title=title,
        columns=tuple(say(lang, f"report.column.{name}", {}) for name in columns),
        rows=tuple(_incident_row(incident, lang) for incident in report.incidents),
        texts=2,
        note=say(lang, "report.no-incidents", {}),
    )


def _incident_row(incident: IncidentCount, lang: str) -> tuple[str, ...]:
    mean = UNKNOWN if incident.mean_seconds is None else duration(incident.mean_seconds, lang)
    name = CATALOGS[lang].get(f"rule.{incident.rule}", incident.rule)
    return printable(name), printable(code(lang, incident.cause)), str(incident.fired), str(incident.resolved), mean
