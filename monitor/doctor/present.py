"""Output of the doctor: text for a terminal, rows for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from monitor.doctor.model import TROUBLE, CheckResult, CheckStatus, CheckVerdict
from monitor.i18n import say

PLAIN_COLUMNS = 120
STYLES = {
    CheckStatus.OK: "green",
    CheckStatus.NOT_CHECKED: "dim",
    CheckStatus.WARNING: "yellow",
    CheckStatus.PROBLEM: "bold red",
}


class VerdictRow(msgspec.Struct, frozen=True):
    """A verdict as text. `do` is the advice; None if there is nothing to do."""

    check: str
    status: str
    what: str
    do: str | None


def rows(results: Sequence[CheckResult], lang: str) -> tuple[VerdictRow, ...]:
    """All verdicts, for JSON output."""
    return tuple(
        VerdictRow(result.check, verdict.status.value, _description(verdict, lang), _advice(verdict, lang))
        for result in results
        for verdict in result.verdicts
    )


def print_results(results: Sequence[CheckResult], lang: str, file: TextIO) -> None:
    """Print a line per check, by group, and then each warning and problem with its advice."""
    width = None if file.isatty() else PLAIN_COLUMNS
    console = Console(file=file, width=width, markup=False, highlight=False, emoji=False)
    _print_checks(console, results, lang)
    for result in results:
        _print_trouble(console, result, lang)
    console.print()
    console.print(Text(_summary(results, lang), style="bold"))


def _print_checks(console: Console, results: Sequence[CheckResult], lang: str) -> None:
    columns = Column(no_wrap=True), Column(no_wrap=True), Column(overflow="fold")
    table = Table(*columns, box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    group = None
    for result in results:
        if result.group != group:
            group = result.group
            table.add_row(Text(say(lang, f"doctor.group.{group}", {}), style="bold"), "", "")
        status = Text(say(lang, f"doctor.status.{result.status}", {}), style=STYLES[result.status])
        table.add_row(Text(f"  {_name(result, lang)}"), status, Text(_remark(result, lang)))
    console.print(table)


def _remark(result: CheckResult, lang: str) -> str:
    """Text beside a check. Warnings and problems are only counted: they are printed below the table."""
    if result.status in TROUBLE:
        return say(lang, "doctor.below", {"count": len(_trouble(result))})
    return " ".join(_description(verdict, lang) for verdict in result.verdicts)


def _print_trouble(console: Console, result: CheckResult, lang: str) -> None:
    verdicts = _trouble(result)
    if not verdicts:
        return
    group = say(lang, f"doctor.group.{result.group}", {})
    console.print()
    console.print(Text(f"{group}: {_name(result, lang)}", style=STYLES[result.status]))
    for verdict in verdicts:
        for line in (_description(verdict, lang), f"→ {_advice(verdict, lang)}"):
            console.print(Padding(Text(line), (0, 0, 0, 2)))


def _summary(results: Sequence[CheckResult], lang: str) -> str:
    statuses = [verdict.status for result in results for verdict in result.verdicts]
    problems, warnings = statuses.count(CheckStatus.PROBLEM), statuses.count(CheckStatus.WARNING)
    if not problems and not warnings:
        return say(lang, "doctor.fine", {})
    return say(lang, "doctor.summary", {"problems": problems, "warnings": warnings})


def _trouble(result: CheckResult) -> list[CheckVerdict]:
    return [verdict for verdict in result.verdicts if verdict.status in TROUBLE]


def _name(result: CheckResult, lang: str) -> str:
    return say(lang, f"doctor.check.{result.check}", {})


def _description(verdict: CheckVerdict, lang: str) -> str:
    return say(lang, f"doctor.{verdict.key}", verdict.values)


def _advice(verdict: CheckVerdict, lang: str) -> str | None:
    return say(lang, f"doctor.{verdict.key}.do", verdict.values) if verdict.status in TROUBLE else None
