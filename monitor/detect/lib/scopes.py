"""Which of many scopes cover a finding, without trying each: a thousand nodes may be down at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from monitor.facts.findings import Finding, Scope

T = TypeVar("T")
_Names = tuple[str, ...]
_Values = tuple[str, ...]


class ScopeIndex(Generic[T]):
    """Scopes, each with something that it stands for."""

    def __init__(self, entries: Iterable[tuple[Scope, T]]) -> None:
        self._found: dict[_Names, dict[_Values, list[tuple[int, Scope, T]]]] = {}
        for rank, (scope, meant) in enumerate(entries):
            names = tuple(sorted(scope.labels))
            values = tuple(scope.labels[name] for name in names)
            self._found.setdefault(names, {}).setdefault(values, []).append((rank, scope, meant))

    def covering(self, finding: Finding) -> Iterator[T]:
        """Yield what the scopes stand for that cover a finding, in the order in which they were given."""
        hits: list[tuple[int, Scope, T]] = []
        for names, by_values in self._found.items():
            values = tuple(finding.labels.get(name, "") for name in names)
            hits += by_values.get(values, ())
        for _, scope, meant in sorted(hits, key=lambda hit: hit[0]):
            if scope.covers(finding):
                yield meant
