"""Samples of many subjects as text, rendered again only for subjects that have changed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import is_
from typing import Any, Generic, NamedTuple, TypeVar

from monitor.base.metrics import MetricTable, braced_labels, family_text, sample_text

T = TypeVar("T")
Labels = tuple[str, ...]


class Samples(NamedTuple):
    """Samples of a subject, for each gauge of a table; "" where the value is unknown. `labels` identify the subject."""

    labels: Labels
    texts: tuple[str, ...]


def one_row(table: MetricTable[T], labels: Callable[[T], Labels]) -> Callable[[T], Samples]:
    """Function that renders a subject with one value for each gauge."""

    def render(subject: T) -> Samples:
        values = labels(subject)
        braced = braced_labels({name: value for name, value in zip(table.labels, values, strict=True) if value})
        read = [(name, of(subject)) for name, _, of in table.gauges]
        return Samples(
            values,
            tuple([sample_text(name, braced, float(value)) if value is not None else "" for name, value in read]),
        )

    return render


def joined_rows(table: MetricTable[T], labels: Callable[[T], Labels]) -> Callable[[Iterable[T]], tuple[str, ...]]:
    """Function that renders several things, for each gauge together. Of those with equal labels, the first counts."""
    render_one = one_row(table, labels)

    def render(things: Iterable[T]) -> tuple[str, ...]:
        rows: dict[Labels, tuple[str, ...]] = {}
        for thing in things:
            row = render_one(thing)
            rows.setdefault(row.labels, row.texts)
        return tuple(map("".join, zip(*rows.values(), strict=True)))

    return render


class _Row(NamedTuple):
    """What was rendered, and on what it depends."""

    version: object
    samples: Samples


class RenderedRows(Generic[T]):
    """Gauges of one table. `version` returns everything on which the samples of a subject depend."""

    def __init__(self, table: MetricTable[Any], version: Callable[[T], object], render: Callable[[T], Samples]) -> None:
        self._table = table
        self._version = version
        self._render = render
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
        rows = list({row.samples.labels: row.samples.texts for row in reversed(self._rows.values())}.values())[::-1]
        for position, (name, text, _) in enumerate(self._table.gauges):
            samples = [sample for texts in rows if (sample := texts[position])]
            if samples:
                yield family_text(name, text, "gauge", samples)

    def _row(self, key: Hashable, subject: T) -> _Row:
        before = self._rows.get(key)
        if before is not None and self._subjects.get(key) is subject:
            return before
        version = self._version(subject)
        if before is not None and before.version == version:
            return before
        return _Row(version, self._render(subject))
