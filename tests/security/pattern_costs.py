"""Runs every pattern of the product against texts built to make it backtrack; used by test_patterns.py.

Patterns are those that modules of the product compile while they are imported, and the literals of other calls of `re`.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import pkgutil
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import monitor

SHORT_CHARS, LONG_CHARS = 200, 1500  # quadratic takes a tenth of a second, cubic several seconds
LONG_TEXTS = 2  # tried of each pattern: those that take longest when short
SAMPLE_CHARS = "a0 ./:-_,\"'\\=@#&<>()[]{}|*~`?!\n\tAé"
FUNCTIONS = ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
END = "\x00"
_parser: Any = importlib.import_module("re._parser")


def product_patterns() -> dict[str, re.Pattern[Any]]:
    """All patterns of the product, by module and text."""
    patterns: dict[str, re.Pattern[Any]] = {}
    original = re.compile

    def recording(pattern: Any, flags: Any = 0) -> Any:
        compiled = original(pattern, flags)
        module = sys._getframe(1).f_globals.get("__name__", "")
        if module.startswith("monitor."):
            patterns[f"{module} {compiled.pattern!r}"] = compiled
        return compiled

    re.compile = recording
    try:
        for module in pkgutil.walk_packages(monitor.__path__, "monitor."):
            if not module.name.endswith(("__main__", "_pb2", "_pb2_grpc")):
                importlib.import_module(module.name)
    finally:
        re.compile = original
    for name, call, nested in calls_of_re():
        argument = call.args[0]
        if isinstance(argument, ast.Constant) and nested:
            patterns.setdefault(f"{name} {argument.value!r}", original(argument.value))
    return patterns


def calls_of_re() -> Iterator[tuple[str, ast.Call, bool]]:
    """Calls of functions of `re` that take a pattern: name of the module, call, and whether it is in a function."""
    root = Path(monitor.__path__[0])
    for path in sorted(root.rglob("*.py")):
        name = ".".join(("monitor", *path.relative_to(root).with_suffix("").parts))
        text = path.read_text(encoding="utf-8")
        if "import re\n" not in text:
            continue
        tree = ast.parse(text)
        functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        nested = {id(node) for function in functions for node in ast.walk(function)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _is_call_of_re(node.func):
                yield name, node, id(node) in nested


def _is_call_of_re(function: ast.expr) -> bool:
    if not isinstance(function, ast.Attribute) or function.attr not in FUNCTIONS:
        return False
    return isinstance(function.value, ast.Name) and function.value.id == "re"


def attacks(pattern: re.Pattern[Any], chars: int) -> Iterator[Any]:
    """Texts that repeat what a pattern repeats, after what has to come before it."""
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    tree = list(_parser.parse(pattern.pattern, flags))
    edges = [0, *(index for index, (operator, _) in enumerate(tree) if str(operator) != "LITERAL"), len(tree)]
    starts = {"".join(_example(tree[:edge])) for edge in edges}
    pumps = {"".join(_example(tree[first:last])) for first in edges for last in edges} | set(SAMPLE_CHARS)
    pumps |= {pump for repeated in _repeated(tree) for pump in _examples(repeated)}
    for start in sorted(starts):
        for pump in sorted(filter(None, pumps)):
            text = (start + pump * (chars // len(pump) + 1))[: chars + len(start)] + END
            yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def _repeated(tree: Iterable[Any]) -> Iterator[list[Any]]:
    """Every repeated part of a pattern, at any depth."""
    for operator, argument in tree:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            yield list(argument[2])
            yield from _repeated(argument[2])
        elif name == "SUBPATTERN":
            yield from _repeated(argument[3])
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _repeated(branch)


def _examples(tree: list[Any]) -> set[str]:
    """Texts that a part matches: the shortest, and every sample character that it accepts."""
    texts = {"".join(_example(tree))}
    if len(tree) == 1 and str(tree[0][0]) == "IN":
        texts |= {char for char in SAMPLE_CHARS if _accepts(tree[0][1], char)}
    return texts


def _example(tree: Iterable[Any]) -> Iterator[str]:
    """Pieces of a short text that a part matches; assertions count as empty."""
    for operator, argument in tree:
        name = str(operator)
        if name == "LITERAL":
            yield chr(argument)
        elif name == "NOT_LITERAL":
            yield next(char for char in SAMPLE_CHARS if ord(char) != argument)
        elif name == "ANY":
            yield "a"
        elif name == "IN":
            yield next((char for char in SAMPLE_CHARS if _accepts(argument, char)), "7")
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            yield from list(_example(argument[2])) * max(1, argument[0])
        elif name == "SUBPATTERN":
            yield from _example(argument[3])
        elif name == "BRANCH":
            yield from _example(argument[1][0])


def _accepts(members: list[Any], char: str) -> bool:
    accepted = any(_is_member(str(operator), argument, char) for operator, argument in members)
    return accepted is not (str(members[0][0]) == "NEGATE")


def _is_member(name: str, argument: Any, char: str) -> bool:
    if name == "LITERAL":
        return bool(ord(char) == argument)
    if name == "RANGE":
        return bool(argument[0] <= ord(char) <= argument[1])
    categories: dict[str, Callable[[str], bool]] = {
        "CATEGORY_DIGIT": str.isdecimal,
        "CATEGORY_SPACE": str.isspace,
        "CATEGORY_WORD": lambda char: char.isalnum() or char == "_",
        "CATEGORY_NOT_DIGIT": lambda char: not char.isdecimal(),
        "CATEGORY_NOT_SPACE": lambda char: not char.isspace(),
        "CATEGORY_NOT_WORD": lambda char: not (char.isalnum() or char == "_"),
    }
    return name == "CATEGORY" and categories[str(argument)](char)


class _TooSlowError(Exception):
    """A pattern took too much CPU time."""


def _too_slow(_signal: int, _frame: FrameType | None) -> None:
    raise _TooSlowError


def slow_patterns(patterns: dict[str, re.Pattern[Any]], limit: float) -> list[str]:
    """Patterns that exceed a limit of CPU seconds on one of the texts."""
    slow = []
    for name, pattern in patterns.items():
        try:
            costs = [cpu_seconds(pattern, text, limit) for text in attacks(pattern, SHORT_CHARS)]
            worst = sorted(range(len(costs)), key=lambda index: costs[index])[-LONG_TEXTS:]
            for index, text in enumerate(attacks(pattern, LONG_CHARS)):
                if index in worst:
                    cpu_seconds(pattern, text, limit)
        except _TooSlowError:
            slow.append(name)
    return slow


def cpu_seconds(pattern: re.Pattern[Any], text: Any, limit: float) -> float:
    """CPU time of a search and a full match. Raise _TooSlowError at the limit."""
    started = time.process_time()
    with cpu_limit(limit):
        pattern.search(text)
        pattern.fullmatch(text)
    return time.process_time() - started


@contextlib.contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise _TooSlowError in the main thread after so many seconds of CPU time, also within a match."""
    before = signal.signal(signal.SIGVTALRM, _too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


if __name__ == "__main__":
    limit_seconds, *texts = sys.argv[1:]
    tried = {text: re.compile(text) for text in texts} or product_patterns()
    print(len(tried), *slow_patterns(tried, float(limit_seconds)), sep="\n")
