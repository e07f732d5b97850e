"""Prints tables to the terminal, and as plain text 120 columns wide elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from monitor.cli.styles import word_style
from monitor.facts import NodeSnapshot
from monitor.facts.cluster import ClusterView, SourceView
from monitor.i18n import say
from monitor.i18n.notes import sentence
from monitor.present import cluster as cluster_tables
from monitor.present import node
from monitor.present.columns import GAP_COLUMNS, fit, measure
from monitor.present.connect import connect_hints
from monitor.present.table import CODED_COLUMNS, NAME_COLUMNS, NUMERIC_COLUMNS, TextTable, in_language

PLAIN_COLUMNS = 120


def print_snapshot(snapshot: NodeSnapshot, file: TextIO, timezone: str = "UTC", *, lang: str = "en") -> None:
    """Print the tables of a node snapshot."""
    _print(node.headline(snapshot, timezone, lang), node.tables(snapshot, lang), file, lang)


def print_machine(
    snapshot: NodeSnapshot, sources: Iterable[SourceView], file: TextIO, *, timezone: str, lang: str
) -> None:
    """Print the tables of this machine, and what to connect while there is neither a cluster nor a GPU."""
    print_snapshot(snapshot, file, timezone, lang=lang)
    hints = connect_hints(sources, has_gpus=snapshot.gpu is not None and bool(snapshot.gpu.gpus))
    if hints:
        console = make_console(file)
        console.print()
        console.print(Text(say(lang, "connect.title", {}), style="bold"))
        for hint in hints:
            console.print(Text(f"  - {sentence(hint, lang)}"))


def print_view(view: ClusterView, file: TextIO, *first: TextTable, timezone: str = "UTC", lang: str = "en") -> None:
    """Print the tables of a cluster view, after the tables `first`."""
    _print(cluster_tables.headline(view, timezone, lang), (*first, *cluster_tables.tables(view, lang)), file, lang)


def print_tables(tables: Iterable[TextTable], file: TextIO, lang: str = "en") -> None:
    """Print tables to `file`."""
    _print_each(make_console(file), tables, lang)


def make_console(file: TextIO) -> Console:
    """Console for `file`: colours only on a terminal, and not with NO_COLOR."""
    width = None if file.isatty() else PLAIN_COLUMNS
    return Console(file=file, width=width, markup=False, highlight=False, emoji=False)


def _print(headline: str, tables: Iterable[TextTable], file: TextIO, lang: str) -> None:
    console = make_console(file)
    console.print(Text(headline, style="bold"))
    console.print()
    _print_each(console, tables, lang)


def _print_each(console: Console, tables: Iterable[TextTable], lang: str) -> None:
    for number, table in enumerate(tables):
        if number:
            console.print()
        shown = in_language(table, lang)
        console.print(Text(shown.title, style="bold"))
        if not shown.rows:
            console.print(Text(f"  {shown.note}"))
            continue
        columns = zip(table.columns, shown.columns, zip(*shown.rows, strict=True), strict=True)
        measured = [measure(name, cells, names=key in NAME_COLUMNS, width=cell_len) for key, name, cells in columns]
        widths = fit(measured, console.width)
        if widths is None:
            _print_records(console, table, shown)
        else:
            console.print(_rich(table, shown, widths))


def _rich(table: TextTable, shown: TextTable, widths: list[int]) -> RichTable:
    rich = RichTable(box=None, header_style="dim", padding=(0, GAP_COLUMNS, 0, 0), pad_edge=False)
    for key, name, width in zip(table.columns, shown.columns, widths, strict=True):
        rich.add_column(Text(name), justify="right" if key in NUMERIC_COLUMNS else "left", width=width, overflow="fold")
    for row, codes in zip(shown.rows, table.rows, strict=True):
        rich.add_row(*_cells(table, row, codes))
    return rich


def _cells(table: TextTable, row: tuple[str, ...], codes: tuple[str, ...]) -> list[Text]:
    """Cells of a row; codes such as severities are coloured."""
    styles = [word_style(code) if key in CODED_COLUMNS else "" for key, code in zip(table.columns, codes, strict=True)]
    return [Text(cell, style=style) for cell, style in zip(row, styles, strict=True)]


def _print_records(console: Console, table: TextTable, shown: TextTable) -> None:
    """Rows one below the other, for a table whose names do not fit side by side."""
    margin = max(map(cell_len, shown.columns)) + GAP_COLUMNS
    for number, (row, codes) in enumerate(zip(shown.rows, table.rows, strict=True)):
        if number:
            console.print()
        for name, cell in zip(shown.columns, _cells(table, row, codes), strict=True):
            label = Text("  " + name + " " * (margin - cell_len(name)), style="dim")
            console.print(label.append_text(cell), overflow="ignore", no_wrap=True, crop=False)
