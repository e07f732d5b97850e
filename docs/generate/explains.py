"""Which rules put which others behind them; from the detectors' code: `rules=` of every Scope that they make."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import monitor.detect
from monitor.detect.rules import RULES

NAMES = frozenset(rule.rule for rule in RULES)


@cache
def explained_by() -> dict[str, tuple[str, ...]]:
    """Return for each rule the rules that may explain it, in the order of all rules."""
    found: dict[str, list[str]] = {}
    for rule in RULES:
        for symptom in symptoms(rule.rule):
            if symptom != rule.rule:
                found.setdefault(symptom, []).append(rule.rule)
    return {symptom: tuple(causes) for symptom, causes in found.items()}


def symptoms(rule: str) -> list[str]:
    """Given a rule, return the rules that its findings may explain."""
    file = Path(monitor.detect.__file__).parent / "rules" / f"{rule.replace('-', '_')}.py"
    tree = ast.parse(file.read_text(encoding="utf-8"))
    constants = dict(_constants(tree))
    return sorted({name for scope in _scopes(tree) for name in _names(scope, constants)})


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield the constants of a module, by name."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            yield from ((target.id, node.value) for target in targets if isinstance(target, ast.Name))


def _scopes(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield what is given as `rules` to a Scope that is not about blindness."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Scope":
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "rules")


def _names(expression: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    """Yield the names of rules in an expression, constants of the module followed once."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield str(node.value)
        elif isinstance(node, ast.Name):
            inner = constants.get("SYMPTOMS" if node.id == "rule" else node.id)
            if inner is not None:
                yield from _names(inner, {})
