"""What assistants may ask through the Model Context Protocol: the questions of the CLI that change nothing, as text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.i18n import LANGUAGES
from monitor.present import alerts as alert_tables
from monitor.present import cluster as cluster_tables
from monitor.present import findings as finding_tables
from monitor.present.table import TextTable, in_language
from monitor.queries.fits import parse_request
from monitor.queries.search import search_why
from monitor.report.model import ReportSource
from monitor.report.render import report_tables, summary_lines
from monitor.web.alerts_api import AlertsBackend
from monitor.web.context import ClusterBackend
from monitor.web.report_api import DEFAULT_SINCE, parse_by, parse_since

MAX_TABLE_ROWS = 50
MAX_ARGUMENT_CHARS = 300
# Arguments of the question whether a job would fit.
FITS = {
    "gpus": "GPUs in total, such as 16.", "per_node": "GPUs of each pod, such as 8; default: all.",
    "model": "A part of the name of the GPU model.", "queue": "Queue.", "namespace": "Whose ResourceQuotas count.",
    "cpu": "Of each pod: 8, 500m.", "memory": "Of each pod: 64Gi.",
}  # fmt: skip
LANG: dict[str, Any] = {"type": "string", "enum": list(LANGUAGES), "description": "Language of the answer."}


@dataclass(frozen=True)
class QueryTool:
    """A question with named arguments. `ask` raises ValueError with a message about wrong arguments."""

    name: str
    description: str
    arguments: Mapping[str, Mapping[str, Any]]
    ask: Callable[[Mapping[str, str]], str]
    required: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        properties = {**self.arguments, "lang": LANG}
        return {
            "type": "object", "properties": properties, "required": list(self.required), "additionalProperties": False,
        }  # fmt: skip

    def answer(self, given: Mapping[str, object]) -> str:
        """The answer to checked arguments. Raise ValueError."""
        arguments: dict[str, str] = {"lang": "en"}
        for name, value in given.items():
            if name not in self.arguments and name != "lang":
                raise ValueError(f"{self.name} has no argument {name[:MAX_ARGUMENT_CHARS]!r}")
            if not isinstance(value, str) or not value or len(value) > MAX_ARGUMENT_CHARS:
                raise ValueError(f"{name} is text of at most {MAX_ARGUMENT_CHARS} characters")
            arguments[name] = value
        for name in self.required:
            if name not in arguments:
                raise ValueError(f"{self.name} needs {name}")
        if arguments["lang"] not in LANGUAGES:
            raise ValueError(f"lang is one of {', '.join(LANGUAGES)}")
        return self.ask(arguments)


def query_tools(
    cluster: ClusterBackend, alerts: AlertsBackend | None, reports: ReportSource | None, timezone: str
) -> tuple[QueryTool, ...]:
    """The tools whose sources are available; times are in the time zone."""

    def status(given: Mapping[str, str]) -> str:
        view, lang = cluster.view(), given["lang"]
        findings = finding_tables.findings_table(cluster.findings(lang), view.at)
        return as_text(cluster_tables.headline(view, timezone), (findings, *cluster_tables.tables(view)), lang)

    def why(given: Mapping[str, str]) -> str:
        return "\n".join(search_why(cluster, given["name"], given.get("namespace"), given["lang"]).lines)

    def fits(given: Mapping[str, str]) -> str:
        wanted = parse_request({name: given[name] for name in FITS if name in given})
        return "\n".join(cluster.fits(wanted, given["lang"]).lines)

    def list_alerts(given: Mapping[str, str]) -> str:
        shown = () if alerts is None else alerts.alerts(given["lang"])
        return as_text("", (alert_tables.alerts_table(shown, time.time()),), given["lang"])

    def report(given: Mapping[str, str]) -> str:
        if reports is None:
            raise ValueError("this daemon writes no report")
        lang = given["lang"]
        found = reports.report(parse_since(given.get("since", DEFAULT_SINCE)), parse_by(given.get("by", "user")))
        tables = (
            TextTable(each.title, each.columns, each.rows, each.note) for each in report_tables(found, lang, timezone)
        )
        return as_text("\n".join(summary_lines(found, lang, timezone)), tables, lang)

    tools = [
        QueryTool("status", "State of the GPU cluster: findings, nodes, GPUs, queues, users, waiting pods", {}, status),
        QueryTool(
            "why", "Why a pod, a job or the pods of a user wait, fail, are stuck or idle, and what to do.",
            {"name": _text("Name of a pod (also NAMESPACE/POD), a job or a user."), "namespace": _text("Namespace.")},
            why, ("name",),
        ),
    ]  # fmt: skip
    about = "Whether a job that does not exist yet would fit: now, split, after which jobs, or never. Creates nothing."
    tools.append(QueryTool("fits", about, {name: _text(text) for name, text in FITS.items()}, fits, ("gpus",)))
    if alerts is not None:
        tools.append(QueryTool("alerts", "Alerts that fire now, causes without their symptoms.", {}, list_alerts))
    if reports is not None:
        by = {"type": "string", "enum": ["user", "queue", "node"], "description": "Grouping of the rows."}
        about = "GPU hours allocated, used and wasted, disk by owner, cleanup results, and incidents by cause."
        tools.append(QueryTool("report", about, {"since": _text("How far back: 24h, 7d, 30d."), "by": by}, report))
    return tuple(tools)


def as_text(head: str, tables: Iterable[TextTable], lang: str) -> str:
    """Tables as Markdown, with at most MAX_TABLE_ROWS rows each."""
    return "\n\n".join(part for part in (head, *(_table(in_language(table, lang)) for table in tables)) if part)


def _table(table: TextTable) -> str:
    if not table.rows:
        return f"## {table.title}\n\n{table.note}"
    rows = [table.columns, ("---",) * len(table.columns), *table.rows[:MAX_TABLE_ROWS]]
    lines = ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    left_out = len(table.rows) - MAX_TABLE_ROWS
    return "\n".join([f"## {table.title}", "", *lines, *([f"(+{left_out})"] if left_out > 0 else [])])


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "maxLength": MAX_ARGUMENT_CHARS, "description": description}
