"""Tables of wording: fragments of lower-cased text and what they mean. The first match wins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")
MIN_KEY_CHARS = 5  # shorter words occur in most texts


class Wording(Generic[T]):
    """A table of fragments. Those that share a word are a group: a text without it needs no further search."""

    def __init__(self, rows: Iterable[tuple[str, T]]) -> None:
        self.rows = tuple(rows)
        words = [_keys(fragment) for fragment, _ in self.rows]
        shared = Counter(word for each in words for word in each)
        groups: dict[str, list[tuple[int, str, T]]] = {}
        for place, (fragment, result) in enumerate(self.rows):
            key = max(words[place], key=lambda word: (shared[word], word), default=fragment)
            groups.setdefault(key if shared[key] > 1 else fragment, []).append((place, fragment, result))
        self.groups = tuple(groups.items())


def _keys(fragment: str) -> set[str]:
    return {word for word in fragment.split() if len(word) >= MIN_KEY_CHARS}


def wording(*rows: tuple[T, tuple[str, ...]]) -> Wording[T]:
    """A table from rows of a result and the fragments that imply it."""
    return Wording((fragment, result) for result, fragments in rows for fragment in fragments)


def find(words: str, table: Wording[T]) -> T | None:
    """The result of the first fragment of the table that occurs in the text."""
    first, found = len(table.rows), None
    for key, group in table.groups:
        if key in words:
            for place, fragment, result in group:
                if place >= first:
                    break
                if fragment in words:
                    first, found = place, result
                    break
    return found


def says(words: str, fragments: Iterable[str]) -> bool:
    """Whether one of the fragments occurs in the text."""
    for fragment in fragments:  # noqa: SIM110  # a generator would take twice as long
        if fragment in words:
            return True
    return False
