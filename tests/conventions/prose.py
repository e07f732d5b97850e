"""Markers of stilted prose: pronouns and clauses where a noun belongs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conventions.sources import comments, docstrings, tree_of

_MARKERS = re.compile(
    r"""\b(?:
      nobody | somebody | everybody | whom
    | (?:is|are|was|were|be|been|being)\ told
    | word\ of
    | of\ which
    | so\ (?:many|much)\b[^.;:]{0,40}\ as\b
    | any\ more
    | (?<!there\ )is\ no\ (?!longer\b|more\ than\b|less\ than\b|later\ than\b|one\b)
    | this\ lasts
    | for\ want\ of
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def markers(text: str) -> list[str]:
    """Markers in a text, in order."""
    return [found.group(0).strip() for found in _MARKERS.finditer(" ".join(text.split()))]


def of_python(path: Path) -> Iterator[tuple[int, str]]:
    """Line and marker, for the docstrings and comments of a file."""
    texts = list(docstrings(tree_of(path)))
    if markers(path.read_text(encoding="utf-8")):  # finding the comments takes ten times as long
        texts += comments(path)
    for line, text in texts:
        yield from ((line, marker) for marker in markers(text))


def of_strings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and marker, for the string literals of a file. Keys of dictionaries are names, not prose."""
    tree = tree_of(path)
    keys = {id(key) for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in keys:
            yield from ((node.lineno, marker) for marker in markers(node.value))


def of_text(path: Path) -> Iterator[tuple[int, str]]:
    """Line and marker, for a document. Code, in blocks and between backticks, is not prose."""
    code = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            yield from ((number, marker) for marker in markers(re.sub(r"`[^`]*`", "``", line)))
