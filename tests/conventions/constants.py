"""Numeric constants whose names lack a unit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.conventions.sources import tree_of

PREFIXES = ("MAX", "MIN")
UNITS = frozenset(
    (
        "NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECOND", "SECONDS", "MINUTE", "MINUTES", "HOUR", "HOURS",
        "DAY", "DAYS", "WEEK", "WEEKS", "YEAR",
        "BITS", "BYTES", "KIB", "MIB", "GIB", "TIB", "HERTZ", "MEGAHERTZ", "WATTS", "MILLIWATTS", "CELSIUS", "PIXELS",
        "RATIO", "PERCENT", "FACTOR", "COUNT", "CHARS", "LINES", "COLUMNS", "ROWS", "WORKERS", "ATTEMPTS", "NODES",
        "PODS", "GPUS", "ITEMS", "POINTS",
        "PORT", "VERSION", "CODE", "UID", "INODE",
    )
)  # fmt: skip


def has_unit(name: str) -> bool:
    words = name.strip("_").split("_")
    return words[0] in PREFIXES or any(word in UNITS for word in words)


def unitless(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each constant of a module or class that is a number and does not say of what."""
    tree = tree_of(path)
    scopes: list[ast.Module | ast.ClassDef] = [tree]
    scopes += [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for scope in scopes:
        for statement in scope.body:
            for name, value in _assigned(statement):
                if name.strip("_").isupper() and _is_number(value) and not has_unit(name):
                    yield statement.lineno, name


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _pairs(statement.target, statement.value)
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _pairs(target, statement.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for each, part in zip(target.elts, value.elts, strict=True):
            yield from _pairs(each, part)


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float) and not isinstance(value.value, bool)
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    return isinstance(value, ast.BinOp) and _is_number(value.left) and _is_number(value.right)
