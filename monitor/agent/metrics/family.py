"""Small helpers to write metric families as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

T = TypeVar("T")
Value = float | int | bool | None
Row = tuple[str, str, Callable[[T], Value]]  # name, help, how to read it


def label(text: str | int | None) -> str:
    """Return a label value: empty when unknown, always valid UTF-8 (a path or a process name need not be)."""
    if text is None:
        return ""
    text = str(text)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def gauges(rows: Sequence[Row[T]], names: Sequence[str], things: Sequence[tuple[Sequence[str], T]]) -> Iterable[Metric]:
    """Given a table of gauges and things with their label values, yield the families that have samples."""
    yield from _families(GaugeMetricFamily, rows, names, things)


def counters(
    rows: Sequence[Row[T]], names: Sequence[str], things: Sequence[tuple[Sequence[str], T]]
) -> Iterable[Metric]:
    """The same for counters; `_total` is added to the names."""
    yield from _families(CounterMetricFamily, rows, names, things)


def _families(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    rows: Sequence[Row[T]],
    names: Sequence[str],
    things: Sequence[tuple[Sequence[str], T]],
) -> Iterable[Metric]:
    for name, text, read in rows:
        family = kind(name, text, labels=names)
        for labels, thing in things:
            value = read(thing)
            if value is not None:
                family.add_metric(labels, float(value))
        if family.samples:
            yield family
