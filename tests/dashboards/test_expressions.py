"""Every query parses and names only existing metrics and labels."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dashboards.expressions import CHOICES, Expression, expressions
from dashboards.generate import documents
from tests.dashboards.known import TARGET_LABELS, metrics
from tests.support import need

QUERIES = expressions()
SELECTOR = re.compile(r"\b([a-z]\w*_\w+|up)\b(?:\{([^}]*)\})?(?!\w*\s*\()")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*[\"']")
LABELS = re.compile(r"\b(by|on|group_left)\s*\(([^)]*)\)")
KEYWORDS = {"group_left"}


def _selectors(expr: str) -> list[tuple[str, set[str]]]:
    """Metrics of an expression, each with the labels of its matchers."""
    without_labels = LABELS.sub(" ", expr)
    found = SELECTOR.findall(without_labels)
    return [(name, {match[1] for match in MATCHER.finditer(labels)}) for name, labels in found if name not in KEYWORDS]


def _shown(query: Expression) -> str:
    return f"{query.dashboard}: {query.panel} {query.ref}"


def test_selectors_are_told_from_functions_labels_and_strings() -> None:
    expr = 'sum by (a_b) (rate(gpuwarden_a_total{x="1",y=~"up_x"}[5m])) / on(node) up{job="j"} > time()'
    assert _selectors(expr) == [("gpuwarden_a_total", {"x", "y"}), ("up", {"job"})]


def test_promtool_parses_every_expression(tmp_path: Path) -> None:
    need(shutil.which("promtool") is not None, "promtool (Debian package prometheus)")
    rules = [{"record": f"dashboard:query{number}", "expr": query.expr} for number, query in enumerate(QUERIES)]
    file = tmp_path / "rules.yaml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}), encoding="utf-8")
    check = subprocess.run(
        ["promtool", "check", "rules", str(file)], capture_output=True, text=True, timeout=300, check=False
    )
    assert check.returncode == 0, check.stdout + check.stderr
    assert f"SUCCESS: {len(QUERIES)} rules found" in check.stdout


@pytest.mark.parametrize("query", QUERIES, ids=_shown)
def test_every_metric_and_label_exists(query: Expression) -> None:
    selectors = _selectors(query.expr)
    assert selectors
    for name, labels in selectors:
        assert name in metrics(), name
        assert labels <= metrics()[name].labels, name
    # Labels of groupings and joins must exist on a metric of the expression.
    there = TARGET_LABELS.union(*(metrics()[name].labels for name, _ in selectors))
    for _, labels in LABELS.findall(query.expr):
        assert {label.strip() for label in labels.split(",") if label.strip()} <= there


@pytest.mark.parametrize("query", QUERIES, ids=_shown)
def test_rates_are_of_counters_and_slopes_are_not(query: Expression) -> None:
    for function, name in re.findall(r"\b(rate|increase|deriv|predict_linear)\((\w+)", query.expr):
        assert metrics()[name].counter == (function in ("rate", "increase")), name


def test_legends_name_labels_that_the_query_has() -> None:
    for document in documents().values():
        for panel in document["panels"]:
            for target in panel.get("targets", ()):
                there = TARGET_LABELS.union(*(metrics()[name].labels for name, _ in _selectors(target["expr"])))
                assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= there, panel["title"]


def test_variables_and_annotations_ask_for_what_there_is() -> None:
    asked = set()
    for document in documents().values():
        for variable in document["templating"]["list"]:
            if variable["type"] != "query":
                continue
            name, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", variable["query"]["query"]).groups()  # type: ignore[union-attr]  # None fails the test too
            assert label in metrics()[name].labels
            asked.add(variable["name"])
    assert asked <= set(CHOICES)


def test_a_choice_that_is_missing_is_not_overlooked() -> None:
    with pytest.raises(KeyError):
        expressions({"node": "gpu-01"})
