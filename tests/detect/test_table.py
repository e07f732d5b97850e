"""The registration tuple is complete, and the metadata of rules agrees with their code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import monitor.detect.rules
from monitor.detect.base import Rule, SubjectKind, symptoms_of
from monitor.detect.lib import node_conditions
from monitor.detect.rules import RULES, node_down
from monitor.facts.changes import ALL_PARTS, KINDS
from monitor.facts.node import PARTS
from monitor.kube import resources

DIRECTORY = Path(monitor.detect.rules.__file__).parent
NAMES = frozenset(rule.rule for rule in RULES)
RESOURCES = {"pods", *(each.name for each in vars(resources).values() if isinstance(each, resources.Resource))}


def source_of(rule: str) -> Path:
    return DIRECTORY / f"{rule.replace('-', '_')}.py"


def test_every_module_with_a_rule_is_registered_once() -> None:
    modules = [path for path in DIRECTORY.glob("*.py") if "\nRULE = Rule(" in path.read_text(encoding="utf-8")]
    assert sorted(source_of(rule.rule) for rule in RULES) == sorted(modules)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule)
def test_rules_suppress_only_declared_symptoms(rule: Rule) -> None:
    """node-down derives its scopes from the declarations; other rules name the rules that they explain."""
    explained = {name for name in _scoped_rules(source_of(rule.rule)) if name != rule.rule}
    declared = set(symptoms_of(rule, RULES))
    assert explained == (set() if rule is node_down.RULE else declared)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule)
def test_rules_name_facts_that_exist(rule: Rule) -> None:
    """A misspelt name would never trigger an evaluation."""
    kinds = set(KINDS) if rule.scope in (SubjectKind.POD, SubjectKind.CLUSTER) else set[str]()
    assert set(rule.needs) <= set(PARTS)
    assert set(rule.uses) <= ALL_PARTS | kinds
    assert set(rule.kube) <= RESOURCES


def test_what_may_cause_a_node_outage_is_no_symptom() -> None:
    symptoms = symptoms_of(node_down.RULE, RULES)
    assert {"gpu-zombie", "image-pull", "agent-silent"} <= set(symptoms)
    assert not {"disk-full", "gpu-fault", "mount-lost", "service-down"} & set(symptoms)


def _scoped_rules(path: Path) -> Iterator[str]:
    """Names of rules passed as `rules` to a Scope, and that of `same_fault`; module constants are followed once."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = dict(_constants(tree))
    for node in ast.walk(tree):
        called = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if called == "same_fault":
            yield node_conditions.RULE_NAME
        if isinstance(node, ast.Call) and called == "Scope":
            for keyword in node.keywords:
                if keyword.arg == "rules":
                    yield from _names(keyword.value, constants)


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node.value) for target in targets if isinstance(target, ast.Name))


def _names(expression: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield str(node.value)
        elif isinstance(node, ast.Name):  # `for rule, ... in SYMPTOMS`
            value = constants.get("SYMPTOMS" if node.id == "rule" else node.id)
            if value is not None:
                yield from _names(value, {})
