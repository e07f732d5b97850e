"""A report as people and programs read it: in the terminal, as JSON, CSV, a page of its own, or a message. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TextIO

import jinja2
import msgspec

from monitor.base.logs import printable
from monitor.base.units import format_ratio, format_size, utc_timestamp
from monitor.facts.text import Text
from monitor.i18n import CATALOGS, Value, say
from monitor.i18n.figures import duration
from monitor.report.model import IncidentCount, Report, ReportRow

Format = Literal["table", "json", "csv", "html"]
Values = dict[str, Value]
FORMATS: tuple[Format, ...] = ("table", "json", "csv", "html")
UNKNOWN = "?"
MAX_MESSAGE_ROWS = 5  # rows that a message names
PLAIN_WIDTH_COLUMNS = 140
VALUE_COLUMNS = ("allocated", "used", "utilization", "wasted", "idle", "zombie", "disk", "cleaned")
NODE_ONLY_COLUMNS = ("faulty", "free", "unknown")  # nobody has these hours, but each is on a node
# A spreadsheet would take what begins so for a formula, and those of East Asia take wide signs for the same.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # noqa: RUF001  # spreadsheets take the wide ones too

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
th { font-weight: 600 } .t { text-align: left } tfoot td { font-weight: 600 } .w { overflow-x: auto }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for line in lines %}
<p>{{ line }}</p>
{% endfor %}
{% for sheet in sheets %}
<h2>{{ sheet.title }}</h2>
{% if sheet.rows %}
<div class="w"><table>
<thead><tr>
{%- for name in sheet.columns %}<th scope="col"{% if loop.index <= sheet.texts %} class="t"{% endif %}>{{ name }}</th>
{%- endfor %}</tr></thead>
<tbody>
{% for row in sheet.rows %}
<tr>{% for cell in row %}<td{% if loop.index <= sheet.texts %} class="t"{% endif %}>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
{% if sheet.total %}
<tfoot><tr>{% for cell in sheet.total %}<td{% if loop.index <= sheet.texts %} class="t"{% endif %}>{{ cell }}</td>
{%- endfor %}</tr></tfoot>
{% endif %}
</table></div>
{% else %}
<p>{{ sheet.note }}</p>
{% endif %}
{% endfor %}
</body>
</html>
"""
)


@dataclass(frozen=True)
class ReportTable:
    """Rows under a title. The first `texts` columns are text, the rest figures. Without rows, `note` says why."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    total: tuple[str, ...] = ()
    note: str = ""


def summary_lines(report: Report, lang: str) -> tuple[str, ...]:
    """Given a report, return what it says in sentences."""
    values: Values = {
        "start": format_time(report.since),
        "end": format_time(report.until),
        "watched": report.watched_seconds,
    }
    period = say(lang, "report.period", values | {"seconds": report.until - report.since})
    said = (
        *_totals(report.total),
        *(_incomplete_cleanup(report) if report.by != "queue" else ()),
    )  # queues clean up nothing
    return (period, *(say(lang, note.key, note.values) for note in said))


def report_tables(report: Report, lang: str) -> tuple[ReportTable, ...]:
    """Given a report, return its tables: by user, queue or node, and the incidents."""
    return _rows_table(report, lang), _incidents_table(report, lang)


def print_tables(report: Report, lang: str, file: TextIO) -> None:
    """Print a report to `file`, as wide as the terminal, or wide enough elsewhere."""
    from rich.console import Console  # here: the daemon does without
    from rich.table import Table
    from rich.text import Text

    width = None if file.isatty() else PLAIN_WIDTH_COLUMNS
    console = Console(file=file, width=width, markup=False, highlight=False, emoji=False)
    console.print(Text(say(lang, "report.title", {}), style="bold"))
    for line in summary_lines(report, lang):
        console.print(Text(line))
    for sheet in report_tables(report, lang):
        console.print()
        console.print(Text(sheet.title, style="bold"))
        if not sheet.rows:
            console.print(Text(f"  {sheet.note}"))
            continue
        rich = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
        for place, name in enumerate(sheet.columns):
            rich.add_column(Text(name), justify="left" if place < sheet.texts else "right", overflow="fold")
        for row in (*sheet.rows, *([sheet.total] if sheet.total else [])):
            rich.add_row(*(Text(cell) for cell in row), style="bold" if row is sheet.total else None)
        console.print(rich)


def as_json(report: Report) -> str:
    """Return a report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report)).decode() + "\n"


def as_csv(report: Report) -> str:
    """Return the rows of a report as CSV, for spreadsheets. No cell is a formula. There is no row of sums."""
    columns = [name for name in ReportRow.__struct_fields__ if name != "name"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow((report.by, *columns))
    for row in report.rows:
        figures = (getattr(row, name) for name in columns)
        cells = ("" if each is None else round(each, 4) for each in figures)
        writer.writerow((escape_formula(printable(row.name or "")), *cells))
    return out.getvalue()


def as_html(report: Report, lang: str) -> str:
    """Return a report as a page that needs nothing else."""
    title = say(lang, "report.title", {})
    return PAGE.render(lang=lang, title=title, lines=summary_lines(report, lang), sheets=report_tables(report, lang))


def escape_formula(text: str) -> str:
    """Given text, return it so that a spreadsheet takes it for text."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def message_texts(report: Report) -> tuple[Text, ...]:
    """Given a report, return what a message says of it, the title first: the sums, and who had most."""
    total = report.total
    said = [
        Text(key="report.told", values={"allocated": format_hours(total.allocated_hours), "wasted": _wasted(total)})
    ]
    said += _totals(total)
    if total.utilization_ratio is not None:
        values: Values = {"utilization": total.utilization_ratio, "used": format_hours(total.used_hours or 0.0)}
        said.append(Text(key="report.told.used", values=values))
    if total.cleaned_bytes:
        said.append(Text(key="report.told.cleaned", values={"size": total.cleaned_bytes}))
    said += _incomplete_cleanup(report)
    named = [row for row in report.rows if row.name is not None and (row.allocated_hours or row.zombie_hours)]
    for row in named[:MAX_MESSAGE_ROWS]:
        ratio: Value = UNKNOWN if row.utilization_ratio is None else row.utilization_ratio
        values = {"allocated": format_hours(row.allocated_hours), "wasted": _wasted(row), "utilization": ratio}
        said.append(Text(key="report.told.row", values=values | {"name": row.name or ""}))
    if rest := named[MAX_MESSAGE_ROWS:]:
        sums: Values = {
            "allocated": format_hours(sum(row.allocated_hours for row in rest)),
            "wasted": format_hours(sum(row.wasted_hours for row in rest)),
        }
        said.append(Text(key="report.told.rest", values={"count": len(rest), **sums}))
    return tuple(said)


def format_hours(value: float) -> str:
    """Given GPU hours, return them with as many digits as say something."""
    return f"{value:,.1f}"


def format_time(at: float) -> str:
    """Given a time, return it as people read it."""
    return f"{utc_timestamp(at)[:16]} UTC"


def _wasted(row: ReportRow) -> str:
    return format_hours(row.wasted_hours)


def _totals(total: ReportRow) -> list[Text]:
    names = ("allocated", "free", "faulty", "unknown", "wasted", "idle", "zombie")
    said = {name: format_hours(getattr(total, f"{name}_hours")) for name in names}
    whole: Values = {
        "hours": format_hours(total.hours),
        "share": total.allocated_hours / total.hours if total.hours else 0.0,
    }
    return [
        Text(key="report.hours", values={**whole, **{name: said[name] for name in names[:4]}}),
        Text(key="report.waste", values={name: said[name] for name in names[4:]}),
    ]


def _incomplete_cleanup(report: Report) -> tuple[Text, ...]:
    """Return that more was cleaned up than is known, where that is so."""
    if report.total.cleaned_bytes is None or report.cleaned_since <= report.since:
        return ()
    return (Text(key="report.cleaned-since", values={"start": format_time(report.cleaned_since)}),)


def _rows_table(report: Report, lang: str) -> ReportTable:
    columns = (*VALUE_COLUMNS, *(NODE_ONLY_COLUMNS if report.by == "node" else ()))
    shown = [row for row in report.rows if row.name is not None or _has_values(row)]
    if report.by == "queue":  # what a queue has on disks is not known
        columns = tuple(name for name in columns if name not in ("disk", "cleaned"))
    nobody = say(lang, "report.nobody", {})
    return ReportTable(
        title=say(lang, f"report.by.{report.by}", {}),
        columns=tuple(say(lang, f"report.column.{name}", {}) for name in (report.by, *columns)),
        rows=tuple((printable(row.name or nobody), *_cells(row, columns)) for row in shown),
        total=(say(lang, "report.total", {}), *_cells(report.total, columns)),
        note=say(lang, "report.empty", {}),
    )


def _has_values(row: ReportRow) -> bool:
    """Hours that nobody had are in the sums already; what somebody unknown had is worth a row."""
    return bool(row.allocated_hours or row.zombie_hours or row.disk_bytes or row.cleaned_bytes)


def _cells(row: ReportRow, columns: tuple[str, ...]) -> list[str]:
    forms: dict[str, Callable[[], str | None]] = {
        "used": lambda: None if row.used_hours is None else format_hours(row.used_hours),
        "utilization": lambda: None if row.utilization_ratio is None else format_ratio(row.utilization_ratio),
        "disk": lambda: None if row.disk_bytes is None else format_size(row.disk_bytes),
        "cleaned": lambda: None if row.cleaned_bytes is None else format_size(row.cleaned_bytes),
    }
    cells = (forms[name]() if name in forms else format_hours(getattr(row, f"{name}_hours")) for name in columns)
    return [UNKNOWN if cell is None else cell for cell in cells]


def _incidents_table(report: Report, lang: str) -> ReportTable:
    later = report.incidents_since > report.since
    title = say(
        lang, "report.incidents-since" if later else "report.incidents", {"start": format_time(report.incidents_since)}
    )
    columns = ("rule", "cause", "fired", "resolved", "mean")
    return ReportTable(
        title=title,
        columns=tuple(say(lang, f"report.column.{name}", {}) for name in columns),
        rows=tuple(_incident_row(each, lang) for each in report.incidents),
        texts=2,
        note=say(lang, "report.no-incidents", {}),
    )


def _incident_row(each: IncidentCount, lang: str) -> tuple[str, ...]:
    took = UNKNOWN if each.mean_seconds is None else duration(each.mean_seconds, lang)
    name = CATALOGS[lang].get(f"rule.{each.rule}", each.rule)
    return printable(name), printable(each.cause), str(each.fired), str(each.resolved), took
