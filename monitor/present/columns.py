"""Widths of the columns of a table in a terminal: names stay whole, other columns wrap. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

MIN_CELLS = 8  # to which a column without names may shrink
GAP_COLUMNS = 2  # between two columns


@dataclass(frozen=True)
class Column:
    """The natural and the smallest width of a column."""

    natural: int
    smallest: int


def measure(heading: str, cells: Sequence[str], *, names: bool, width: Callable[[str], int]) -> Column:
    """Width of a column. A column of names shrinks to its longest name, another one to MIN_CELLS."""
    texts = (heading, *cells)
    natural = max(map(width, texts))
    word = max((width(word) for text in (cells if names else texts) for word in text.split()), default=0)
    return Column(natural, min(natural, max(word, width(heading)) if names else min(word, MIN_CELLS)))


def fit(columns: Sequence[Column], available: int) -> list[int] | None:
    """Widths that fit: the widest column shrinks first. None if the table is too wide even then."""
    room = available - GAP_COLUMNS * (len(columns) - 1)
    if sum(column.smallest for column in columns) > room:
        return None
    widths = [min(column.natural, room) for column in columns]
    for _ in range(sum(widths) - room):
        loose = (index for index, column in enumerate(columns) if widths[index] > column.smallest)
        widths[max(loose, key=lambda index: widths[index])] -= 1
    return widths
