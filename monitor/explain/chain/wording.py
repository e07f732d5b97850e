"""Tables of wording: fragments of lower-cased text and what they mean. The first match wins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
Wording = tuple[tuple[str, T], ...]


def wording(*rows: tuple[T, tuple[str, ...]]) -> Wording[T]:
    """A table from rows of a result and the fragments that imply it."""
    return tuple((fragment, result) for result, fragments in rows for fragment in fragments)


def find(words: str, table: Wording[T]) -> T | None:
    """The result of the first fragment of the table that occurs in the text."""
    for fragment, result in table:
        if fragment in words:
            return result
    return None


def says(words: str, fragments: Iterable[str]) -> bool:
    """Whether one of the fragments occurs in the text."""
    for fragment in fragments:  # noqa: SIM110  # a generator would take twice as long
        if fragment in words:
            return True
    return False
