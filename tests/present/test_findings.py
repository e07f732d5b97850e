# ruff: noqa: E501  # one row per case
"""Findings as views and tables."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from monitor.present.findings import NOT_EVALUATED, LocalizedFinding, findings_table, has_urgent, localize_findings
from monitor.present.table import heading
from tests.explain.builders import NOW

SILENT = Text(key="node-down.kubelet-silent", values={"node": "n1", "seconds": 60.0})


def finding(**more: Any) -> Finding:
    given: dict[str, Any] = {
        "rule": "node-down", "severity": Severity.WARNING, "cause": "kubelet-silent", "labels": {"node": "n1"},
        "headline": SILENT, "since": NOW - 60,
    }  # fmt: skip
    return Finding(**(given | more))


def views(*findings: Finding) -> tuple[LocalizedFinding, ...]:
    return localize_findings(findings, "en")


def test_a_finding_in_both_languages() -> None:
    given = finding(evidence=(Text(key="node-down.says", values={"message": "m"}),), advice=(), raw="m", held=True)
    english, chinese = views(given)[0], localize_findings([given], "zh")[0]
    assert english.headline == "Node n1 is down: its kubelet stopped reporting, and it has not been ready for 1 min."
    assert (english.evidence, english.raw, english.held) == (("Kubernetes says: m",), "m", True)
    assert chinese.headline == "节点 n1 宕机：它的 kubelet 停止上报，已有 1 分钟未就绪。"


def test_the_worst_comes_first_and_symptoms_last() -> None:
    given = [
        finding(labels={"node": "symptom"}, severity=Severity.CRITICAL, explained_by="x", since=NOW - 900),
        finding(labels={"node": "info"}, severity=Severity.INFO),
        finding(labels={"node": "late"}),
        finding(labels={"node": "early"}, since=NOW - 600),
        finding(labels={"node": "unknown since"}, since=None),
        finding(labels={"node": "critical"}, severity=Severity.CRITICAL),
    ]
    order = [each.labels["node"] for each in views(*given)]
    assert order == ["critical", "early", "late", "unknown since", "info", "symptom"]


@pytest.mark.parametrize(
    "note", [Text(key="no.such.key", values={"a": 1}), Text(key="node-down.kubelet-silent", values={"a": 1})]
)
def test_a_sentence_that_is_missing_does_not_hide_that_something_is_wrong(note: Text) -> None:
    assert views(finding(headline=note))[0].headline == f"{note.key} a=1"


ROWS: list[tuple[str, Finding, tuple[str, ...]]] = [
    ("a node", finding(), ("warning", "node-down", "node n1", "Node n1 is down: its kubelet stopped reporting, and it has not been ready for 1 min.", "1m")),
    ("held", finding(held=True), ("warning", "node-down", "node n1", "Node n1 is down: its kubelet stopped reporting, and it has not been ready for 1 min. (as last seen)", "1m")),
    ("unknown start", finding(since=None), ("warning", "node-down", "node n1", "Node n1 is down: its kubelet stopped reporting, and it has not been ready for 1 min.", "")),
    ("a GPU", finding(labels={"user": "ann", "gpu": "3", "node": "n1"}), ("warning", "node-down", "node n1, gpu 3, user ann", "Node n1 is down: its kubelet stopped reporting, and it has not been ready for 1 min.", "1m")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "row"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row(name: str, given: Finding, row: tuple[str, ...]) -> None:
    found = findings_table(views(given), NOW)
    assert (found.title, found.rows) == ("Findings", (row,))
    assert len(found.columns) == len(row)


def test_symptoms_are_counted_and_shown_only_when_asked_for() -> None:
    given = views(finding(), finding(labels={"node": "n2"}, explained_by="x"))
    assert (heading(findings_table(given, NOW), "en"), len(findings_table(given, NOW).rows)) == (
        "Findings (1 more explained by these)",
        1,
    )
    assert (
        findings_table(given, NOW, everything=True).title,
        len(findings_table(given, NOW, everything=True).rows),
    ) == ("Findings", 2)


def test_many_are_cut() -> None:
    found = findings_table(views(*(finding(labels={"node": f"n{number}"}) for number in range(201))), NOW)
    assert (heading(found, "en"), len(found.rows)) == ("Findings (the first 200 of 201)", 200)


def test_nothing_found_is_not_nothing_known() -> None:
    assert findings_table((), NOW).note == "no findings"
    assert findings_table(None, NOW).note == NOT_EVALUATED


def test_names_from_outside_cannot_reach_the_terminal() -> None:
    evil = finding(
        labels={"node": "\x1b[31m\n"}, headline=Text(key="rule-broken", values={"rule": "\x1b", "error": "\n"})
    )
    assert all(cell.isprintable() for row in findings_table(views(evil), NOW).rows for cell in row)


@pytest.mark.parametrize(
    ("severity", "expect"), [(Severity.INFO, False), (Severity.WARNING, True), (Severity.CRITICAL, True)]
)
def test_what_is_urgent(severity: Severity, expect: bool) -> None:
    assert has_urgent(views(finding(severity=severity))) is expect
    assert not has_urgent(None)
