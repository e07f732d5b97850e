"""The words beside this file: tables (a key, then a column a language, apart by tabs) and beginnings of pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

COLUMN = {"en": 0, "zh": 1}


@cache
def rows(name: str) -> dict[str, tuple[str, ...]]:
    """Given the name of a table, return its rows by key. Raise ValueError if a key is there twice."""
    found: dict[str, tuple[str, ...]] = {}
    for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines():
        key, *cells = line.split("\t")
        if key in found:
            raise ValueError(f"{name}: {key} is there twice")
        found[key] = tuple(cells)
    return found


def word(name: str, key: str, lang: str) -> str:
    """Given a table, a key and a language, return the text. Raise KeyError if the table has none."""
    return rows(name)[key][COLUMN[lang]]


def intro(name: str, lang: str) -> str:
    """Given a page and a language, return what people wrote as its beginning."""
    return (Path(__file__).parent / "intro" / f"{name}.{lang}.md").read_text(encoding="utf-8")


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Given the head and the lines of a table, return it as Markdown. A bar inside a cell stays a bar."""
    shown = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in shown)


def code(text: str) -> str:
    """Given text, return it as code in a line."""
    return f"`{text}`"
