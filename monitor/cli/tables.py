"""Prints tables to the terminal, and as plain text 120 columns wide elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from monitor.facts import NodeSnapshot
from monitor.facts.cluster import ClusterView, SourceView
from monitor.i18n import say
from monitor.i18n.notes import sentence
from monitor.present import cluster as cluster_tables
from monitor.present import node
from monitor.present.connect import connect_hints
from monitor.present.table import NUMERIC_COLUMNS, TextTable

PLAIN_COLUMNS = 120


def print_snapshot(snapshot: NodeSnapshot, file: TextIO, timezone: str = "UTC") -> None:
    """Print the tables of a node snapshot."""
    _print(node.headline(snapshot, timezone), node.tables(snapshot), file)


def print_machine(
    snapshot: NodeSnapshot, sources: Iterable[SourceView], file: TextIO, *, timezone: str, lang: str
) -> None:
    """Print the tables of this machine, and what to connect while there is neither a cluster nor a GPU."""
    print_snapshot(snapshot, file, timezone)
    hints = connect_hints(sources, has_gpus=snapshot.gpu is not None and bool(snapshot.gpu.gpus))
    if hints:
        console = _console(file)
        console.print()
        console.print(Text(say(lang, "connect.title", {}), style="bold"))
        for hint in hints:
            console.print(Text(f"  - {sentence(hint, lang)}"))


def print_view(view: ClusterView, file: TextIO, *first: TextTable, timezone: str = "UTC") -> None:
    """Print the tables of a cluster view, after the tables `first`."""
    _print(cluster_tables.headline(view, timezone), (*first, *cluster_tables.tables(view)), file)


def print_tables(tables: Iterable[TextTable], file: TextIO) -> None:
    """Print tables to `file`."""
    _print_each(_console(file), tables)


def _print(headline: str, tables: Iterable[TextTable], file: TextIO) -> None:
    console = _console(file)
    console.print(Text(headline, style="bold"))
    console.print()
    _print_each(console, tables)


def _console(file: TextIO) -> Console:
    width = None if file.isatty() else PLAIN_COLUMNS
    return Console(file=file, width=width, markup=False, highlight=False, emoji=False)


def _print_each(console: Console, tables: Iterable[TextTable]) -> None:
    for number, table in enumerate(tables):
        if number:
            console.print()
        console.print(Text(table.title, style="bold"))
        console.print(_rich(table) if table.rows else Text(f"  {table.note}"))


def _rich(table: TextTable) -> RichTable:
    rich = RichTable(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for name in table.columns:
        rich.add_column(name, justify="right" if name in NUMERIC_COLUMNS else "left", overflow="fold")
    for row in table.rows:
        rich.add_row(*(Text(cell) for cell in row))
    return rich
