"""Texts of this directory: tab-separated tables (key, then a column per language) and introductions of pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

COLUMN = {"en": 0, "zh": 1}


@cache
def rows(name: str) -> dict[str, tuple[str, ...]]:
    """Rows of a table by key. Raises ValueError for a duplicate key."""
    by_key: dict[str, tuple[str, ...]] = {}
    for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines():
        key, *cells = line.split("\t")
        if key in by_key:
            raise ValueError(f"{name}: duplicate key {key}")
        by_key[key] = tuple(cells)
    return by_key


def word(name: str, key: str, lang: str) -> str:
    """Text of a key in a language. Raises KeyError if the table has none."""
    return rows(name)[key][COLUMN[lang]]


def intro(name: str, lang: str) -> str:
    """Hand-written introduction of a page."""
    return (Path(__file__).parent / "intro" / f"{name}.{lang}.md").read_text(encoding="utf-8")


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    shown = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in shown)


def code(text: str) -> str:
    """Inline code."""
    return f"`{text}`"
