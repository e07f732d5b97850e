"""Samples of many subjects as text, rendered again only for subjects that have changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import is_
from typing import Generic, NamedTuple, TypeVar

from monitor.base.metrics import MetricTable, braced_labels, family_text, sample_text

T = TypeVar("T")


class _Row(NamedTuple):
    """Samples of one subject, one for each gauge of the table; "" where the value is unknown."""

    version: object
    labels: tuple[str, ...]
    samples: tuple[str, ...]


class RenderedRows(Generic[T]):
    """Gauges of one table. `version` returns everything on which the samples of a subject depend."""

    def __init__(
        self, table: MetricTable[T], labels: Callable[[T], tuple[str, ...]], version: Callable[[T], object]
    ) -> None:
        self._table = table
        self._labels = labels
        self._version = version
        self._subjects: dict[Hashable, T] = {}  # as they were rendered last
        self._rows: dict[Hashable, _Row] = {}
        self._texts: tuple[bytes, ...] = ()

    def texts(self, subjects: Iterable[tuple[Hashable, T]]) -> tuple[bytes, ...]:
        """Text of each family that has samples. Of subjects with equal labels, the first counts."""
        before, now = self._rows, dict(subjects)
        self._rows = {key: self._row(key, subject) for key, subject in now.items()}
        self._subjects = now
        if len(before) != len(self._rows) or not all(map(is_, before.values(), self._rows.values())):
            self._texts = tuple(self._families())
        return self._texts

    def _families(self) -> Iterator[bytes]:
        rows = list({row.labels: row for row in reversed(self._rows.values())}.values())[::-1]
        for position, (name, text, _) in enumerate(self._table.gauges):
            samples = [sample for row in rows if (sample := row.samples[position])]
            if samples:
                yield family_text(name, text, "gauge", samples)

    def _row(self, key: Hashable, subject: T) -> _Row:
        before = self._rows.get(key)
        if before is not None and self._subjects.get(key) is subject:
            return before
        version = self._version(subject)
        if before is not None and before.version == version:
            return before
        labels = self._labels(subject)
        named = {name: value for name, value in zip(self._table.labels, labels, strict=True) if value}
        braced, samples = braced_labels(named), []
        for name, _, read in self._table.gauges:
            value = read(subject)
            samples.append(sample_text(name, braced, float(value)) if value is not None else "")
        return _Row(version, labels, tuple(samples))
