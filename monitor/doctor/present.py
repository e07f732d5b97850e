"""Results in words: lines for people, rows for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from monitor.doctor.model import TROUBLE, Status, Verdict
from monitor.doctor.run import Result
from monitor.i18n import say

PLAIN_WIDTH = 120
STYLES = {Status.OK: "green", Status.NOT_CHECKED: "dim", Status.WARNING: "yellow", Status.PROBLEM: "bold red"}


class Row(msgspec.Struct, frozen=True):
    """One verdict in words. `do` is what to do; None where there is nothing to do."""

    check: str
    status: str
    what: str
    do: str | None


def rows(results: Sequence[Result], lang: str) -> tuple[Row, ...]:
    """Given results, return every verdict as a program reads it."""
    return tuple(
        Row(result.check, verdict.status.value, _what(verdict, lang), _do(verdict, lang))
        for result in results
        for verdict in result.verdicts
    )


def print_results(results: Sequence[Result], lang: str, file: TextIO) -> None:
    """Given results, print a line for each check, by group, and then what is wrong and what to do about it."""
    width = None if file.isatty() else PLAIN_WIDTH
    console = Console(file=file, width=width, markup=False, highlight=False, emoji=False)
    _print_checks(console, results, lang)
    for result in results:
        _print_trouble(console, result, lang)
    console.print()
    console.print(Text(_summary(results, lang), style="bold"))


def _print_checks(console: Console, results: Sequence[Result], lang: str) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    group = None
    for result in results:
        if result.group != group:
            group = result.group
            table.add_row(Text(say(lang, f"doctor.group.{group}", {}), style="bold"), "", "")
        status = Text(say(lang, f"doctor.status.{result.status}", {}), style=STYLES[result.status])
        table.add_row(Text(f"  {_name(result, lang)}"), status, Text(" ".join(_in_short(result, lang))))
    console.print(table)


def _in_short(result: Result, lang: str) -> Iterator[str]:
    """Yield what stands beside a check. What is wrong has its own place below."""
    if result.status in TROUBLE:
        count = sum(verdict.status in TROUBLE for verdict in result.verdicts)
        yield say(lang, "doctor.below", {"count": count})
        return
    for verdict in result.verdicts:
        yield _what(verdict, lang)


def _print_trouble(console: Console, result: Result, lang: str) -> None:
    troubled = [verdict for verdict in result.verdicts if verdict.status in TROUBLE]
    if not troubled:
        return
    group = say(lang, f"doctor.group.{result.group}", {})
    console.print()
    console.print(Text(f"{group}: {_name(result, lang)}", style=STYLES[result.status]))
    for verdict in troubled:
        console.print(Padding(Text(_what(verdict, lang)), (0, 0, 0, 2)))
        console.print(Padding(Text(f"→ {_do(verdict, lang)}"), (0, 0, 0, 2)))


def _summary(results: Sequence[Result], lang: str) -> str:
    statuses = [verdict.status for result in results for verdict in result.verdicts]
    problems, warnings = (statuses.count(each) for each in (Status.PROBLEM, Status.WARNING))
    if not problems and not warnings:
        return say(lang, "doctor.fine", {})
    return say(lang, "doctor.summary", {"problems": problems, "warnings": warnings})


def _name(result: Result, lang: str) -> str:
    return say(lang, f"doctor.check.{result.check}", {})


def _what(verdict: Verdict, lang: str) -> str:
    return say(lang, f"doctor.{verdict.key}", verdict.values)


def _do(verdict: Verdict, lang: str) -> str | None:
    return say(lang, f"doctor.{verdict.key}.do", verdict.values) if verdict.status in TROUBLE else None
