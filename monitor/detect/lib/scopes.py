"""Index of scopes: finds those covering a finding without testing each, as a thousand nodes may be down at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from monitor.facts.findings import Finding, Scope

T = TypeVar("T")
_Names = tuple[str, ...]
_Values = tuple[str, ...]


class ScopeIndex(Generic[T]):
    """Scopes with an associated value each."""

    def __init__(self, entries: Iterable[tuple[Scope, T]]) -> None:
        self._entries: dict[_Names, dict[_Values, list[tuple[int, Scope, T]]]] = {}
        for rank, (scope, value) in enumerate(entries):
            names = tuple(sorted(scope.labels))
            values = tuple(scope.labels[name] for name in names)
            self._entries.setdefault(names, {}).setdefault(values, []).append((rank, scope, value))

    def covering(self, finding: Finding) -> Iterator[T]:
        """Values of the scopes that cover a finding, in insertion order."""
        hits: list[tuple[int, Scope, T]] = []
        for names, by_values in self._entries.items():
            values = tuple(finding.labels.get(name, "") for name in names)
            hits += by_values.get(values, ())
        for _, scope, value in sorted(hits, key=lambda hit: hit[0]):
            if scope.covers(finding):
                yield value
