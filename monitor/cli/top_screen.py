"""Draws a frame of `gpuwarden top`."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from monitor.base.units import format_ratio, format_size
from monitor.cli.styles import word_style
from monitor.facts.findings import Severity
from monitor.facts.text import Value
from monitor.i18n import say
from monitor.present.columns import GAP_COLUMNS, fit, measure
from monitor.present.table import UNKNOWN, table_word
from monitor.present.top import TopFrame, TopKind, TopRow

BAR_COLUMNS = 5
# Columns of each kind; those that a narrow terminal leaves out, first to last.
COLUMNS = {
    TopKind.GPUS: ("GPU", "state", "util", "GPU memory", "temp", "power", "user", "pod", "job", "model"),
    TopKind.NODES: ("node", "state", "free", "util", "GPU memory", "temp", "power", "user", "model"),
}
LEFT_OUT_FIRST = ("model", "job", "power", "temp", "GPU memory")
RIGHT = frozenset({"free", "GPU memory", "temp", "power"})
WRAPPING = frozenset({"state", "user", "pod", "job"})
HOT_CELSIUS, WARM_CELSIUS = 85.0, 75.0
BUSY_RATIO, IDLE_RATIO = 0.8, 0.1
SORT_COLUMNS = {
    "name": "name", "utilization": "util", "memory": "GPU memory", "temperature": "temp", "power": "power",
    "user": "user", "state": "state",
}  # fmt: skip
SEVERITY_STYLES = {Severity.CRITICAL: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def draw(frame: TopFrame, lang: str, width: int, page: int | None, trouble: str = "") -> RenderableType:
    """The frame in a terminal `width` cells wide; `page` rows fit, None shows all of them and no keys."""
    first = 0 if page is None else frame.choice.first
    rows = frame.rows[first:] if page is None else frame.rows[first : first + page]
    lines = [Text(frame.summary, style="bold"), _alerts(frame)]
    lines += [Text(frame.sources, style="red")] if frame.sources else []
    lines += [Text(trouble, style="bold red")] if trouble else []
    parts: list[RenderableType] = [*(_cropped(line, width) for line in lines), _table(frame, rows, lang, width)]
    if page is not None:
        parts += [_cropped(line, width) for line in _footer(frame, lang, first, len(rows))]
    return Group(*parts)


def lines_around(frame: TopFrame, trouble: str = "") -> int:
    """Lines of a frame besides its rows: two above the table, its heading, two below, and those about failures."""
    return 5 + bool(frame.sources) + bool(trouble)


def _alerts(frame: TopFrame) -> Text:
    style = "dim" if frame.severity is None else SEVERITY_STYLES[frame.severity]
    return Text(frame.alerts, style=style)


def _footer(frame: TopFrame, lang: str, first: int, shown: int) -> list[Text]:
    values: dict[str, Value] = {
        "first": first + bool(shown),
        "last": first + shown,
        "count": len(frame.rows),
        "key": table_word(SORT_COLUMNS[frame.choice.sort], lang),
    }
    return [Text(say(lang, "top.shown", values), style="dim"), Text(say(lang, "top.keys", {}), style="dim")]


def _cropped(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line


def _table(frame: TopFrame, rows: tuple[TopRow, ...], lang: str, width: int) -> RichTable:
    names = list(COLUMNS[frame.choice.kind])
    cells = {name: [_cell(row, name, lang) for row in rows] for name in names}
    if not any(row.job for row in rows) and "job" in names:
        names.remove("job")

    def natural(name: str) -> int:
        return max(cell_len(table_word(name, lang)), *(cell.cell_len for cell in cells[name]), 0)

    for name in LEFT_OUT_FIRST:
        if name in names and sum(map(natural, names)) + GAP_COLUMNS * (len(names) - 1) > width:
            names.remove(name)
    columns = [
        measure(
            table_word(name, lang), [cell.plain for cell in cells[name]], names=name not in WRAPPING, width=cell_len
        )
        for name in names
    ]
    widths = fit(columns, width) or [column.smallest for column in columns]
    table = RichTable(box=None, header_style="reverse", padding=(0, GAP_COLUMNS, 0, 0), pad_edge=False)
    for name, size in zip(names, widths, strict=True):
        side = "right" if name in RIGHT else "left"
        table.add_column(Text(table_word(name, lang)), justify=side, width=size, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    for index in range(len(rows)):
        table.add_row(*(cells[name][index] for name in names))
    return table


def _cell(row: TopRow, name: str, lang: str) -> Text:
    if name in ("GPU", "node"):
        return Text(row.name, style="bold")
    if name == "state":
        return Text(row.state_text or table_word(row.state, lang), style=word_style(row.state))
    if name == "util":
        return _load(row.utilization_ratio)
    if name == "GPU memory":
        return _memory(row)
    if name == "temp":
        return _temperature(row.temperature_celsius)
    if name == "power":
        return _power(row)
    return Text({"user": row.user, "pod": row.pod, "job": row.job, "model": row.model or "", "free": row.free}[name])


def _load(ratio: float | None) -> Text:
    if ratio is None:
        return Text(f"{UNKNOWN:>4} " + " " * BAR_COLUMNS, style="dim")
    full = round(min(1.0, ratio) * BAR_COLUMNS)
    style = "green" if ratio >= BUSY_RATIO else "dim" if ratio < IDLE_RATIO else "yellow"
    return Text(f"{format_ratio(ratio):>4} ").append("█" * full + "░" * (BAR_COLUMNS - full), style=style)


def _memory(row: TopRow) -> Text:
    if row.memory_used_bytes is None and row.memory_total_bytes is None:
        return Text(UNKNOWN, style="dim")
    sizes = (row.memory_used_bytes, row.memory_total_bytes)
    used, total = (UNKNOWN if size is None else format_size(size) for size in sizes)
    number, _, unit = used.partition(" ")
    return Text(f"{number if unit == total.partition(' ')[2] else used} / {total}")


def _temperature(celsius: float | None) -> Text:
    if celsius is None:
        return Text(UNKNOWN, style="dim")
    return Text(
        f"{celsius:.0f} °C", style="red" if celsius >= HOT_CELSIUS else "yellow" if celsius >= WARM_CELSIUS else ""
    )


def _power(row: TopRow) -> Text:
    if row.power_watts is None:
        return Text(UNKNOWN, style="dim")
    limit = "" if row.power_limit_watts is None else f" / {row.power_limit_watts:.0f}"
    return Text(f"{row.power_watts:.0f}{limit} W")
