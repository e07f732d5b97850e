"""Benchmark results and their Markdown report."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.plot import Plot, svg

HERE = Path(__file__).parent
RESULTS_JSON = HERE / "results.json"
RESULTS_MD = HERE / "RESULTS.md"
PLOTS = HERE / "plots"
HEAD = """# Measured

Written by `make bench`; do not edit. Ratios are the claim: seconds differ from machine to machine.
"""
FIGURE = re.compile(r"^\| `[^`]+` \|.*$", re.MULTILINE)
COLUMNS = ("figure", "value", "goal", "", "meaning")


@dataclass(frozen=True)
class Goal:
    """A figure, its meaning and its bounds. `known` is why a miss is accepted."""

    key: str
    value: float
    at_most: float | None
    meaning: str
    at_least: float | None = None
    known: str = ""

    @property
    def met(self) -> bool:
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)


def fails(goals: Sequence[Goal]) -> bool:
    """Whether a goal is missed unexpectedly; known misses stay in the table as missed."""
    return not all(goal.met or goal.known for goal in goals)


@dataclass(frozen=True)
class Report:
    """A benchmark's section: goals, tables as (heading, columns, rows), and a plot."""

    name: str
    title: str
    how: str
    goals: Sequence[Goal]
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = field(default_factory=tuple)
    plot: Plot | None = None


def write(report: Report) -> None:
    """Write the report to results.json and RESULTS.md, replacing an earlier one of that name."""
    figures = json.loads(RESULTS_JSON.read_text()) if RESULTS_JSON.exists() else {}
    figures |= {goal.key: goal.value for goal in report.goals}
    RESULTS_JSON.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")
    if report.plot is not None:
        PLOTS.mkdir(exist_ok=True)
        (PLOTS / f"{report.name}.svg").write_text(svg(report.plot), encoding="utf-8")
    text = RESULTS_MD.read_text(encoding="utf-8") if RESULTS_MD.exists() else ""
    RESULTS_MD.write_text(with_section(text, report.name, section(report)), encoding="utf-8")


def with_section(text: str, name: str, new: str) -> str:
    """The results with one section replaced, preceded by a table of all figures."""
    sections = dict(re.findall(r"<!-- (\w+) -->\n(.*?)<!-- end \1 -->", text, flags=re.DOTALL))
    sections[name] = new
    rows = [row for each in sections.values() for row in FIGURE.findall(each)]
    figures = "\n".join([*table(COLUMNS, ())[:2], *rows])
    body = "\n".join(f"<!-- {each} -->\n{sections[each]}<!-- end {each} -->\n" for each in sections)
    return f"{HEAD}\n## All figures\n\n{figures}\n\n{body}"


def section(report: Report) -> str:
    """A report as Markdown."""
    lines = [f"## {report.title}", "", f"{machine()}", "", report.how, ""]
    if report.plot is not None:
        lines += [f"![{report.plot.title}](plots/{report.name}.svg)", ""]
    lines += table(
        COLUMNS,
        [(f"`{g.key}`", _number(g.value), _goal(g), _verdict(g), g.meaning) for g in report.goals],
    )
    for heading, columns, rows in report.tables:
        lines += [f"### {heading}", "", *table(columns, rows)]
    return "\n".join(lines)


def machine() -> str:
    """Date and machine of the measurement."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return f"{today}, {os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}."


def _goal(goal: Goal) -> str:
    bounds = ((">=", goal.at_least), ("<=", goal.at_most))
    return ", ".join(f"{sign} {_number(bound)}" for sign, bound in bounds if bound is not None)


def _verdict(goal: Goal) -> str:
    if goal.at_most is None and goal.at_least is None:
        return ""
    if goal.met:
        return "met"
    return f"**missed**, known: {goal.known}" if goal.known else "**missed**"


def _number(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else f"{value:.3g}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]
