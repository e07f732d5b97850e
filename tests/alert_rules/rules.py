"""The rule files of `alerts/` as data, shared by the tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ALERTS = Path(__file__).parents[2] / "alerts"
RULE_FILES = tuple(sorted(ALERTS.glob("*.rules.yml")))
TEST_FILES = tuple(sorted((ALERTS / "tests").glob("*.test.yml")))
DYNAMIC = "{{"  # a label whose value comes from the series
_METRIC = re.compile(r"\b[a-z][a-z0-9_]*(?::[a-z0-9_]+){2}\b|\bgpuwarden_[a-z0-9_]+\b|\bup(?=\{)")


@dataclass(frozen=True)
class RuleText:
    """One rule of a file; `name` is the alert or the recorded series."""

    file: str
    group: str
    name: str
    expr: str
    is_alert: bool
    wait: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file}:{self.name}:{self.labels.get('cause', '')}:{self.labels.get('severity', '')}"

    def metrics(self) -> set[str]:
        """Names of all series in the expression."""
        without_text = re.sub(r'"(?!gpuwarden_)[^"]*"', '""', self.expr)
        return set(_METRIC.findall(without_text))


@cache
def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def rules() -> Iterator[RuleText]:
    """Every rule of every file."""
    for path in RULE_FILES:
        for group in _read(path)["groups"]:
            for rule in group["rules"]:
                yield RuleText(
                    file=path.name,
                    group=group["name"],
                    name=rule.get("alert") or rule["record"],
                    expr=rule["expr"],
                    is_alert="alert" in rule,
                    wait=rule.get("for", ""),
                    labels=rule.get("labels", {}),
                    annotations=rule.get("annotations", {}),
                )


def expressions() -> Iterator[tuple[str, str, str]]:
    """(file, rule name, expression) of every rule, for evaluation by a real Prometheus that scrapes real agents."""
    return ((rule.file, rule.name, rule.expr) for rule in rules())


def alerts() -> list[RuleText]:
    """Alerting rules."""
    return [rule for rule in rules() if rule.is_alert]


def recorded() -> dict[str, RuleText]:
    """Recording rules by name."""
    return {rule.name: rule for rule in rules() if not rule.is_alert}


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """(rule files, case) of every case of every test file."""
    for path in TEST_FILES:
        whole = _read(path)
        for case in whole["tests"]:
            yield " ".join(whole["rule_files"]), case
