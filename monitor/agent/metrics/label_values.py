"""Messages as label values: bounded, because metric stores refuse or truncate longer ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from monitor.base.metrics import label
from monitor.base.text import shorten

MAX_CHARS = 300  # the strictest store accepts 1024 bytes


def message_label(text: str | None) -> str:
    """Message as a label value; empty without one."""
    return shorten(label(text), MAX_CHARS)


def infos(name: str, text: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterable[Metric]:
    """Family with a 1 for each distinct row of label values; nothing if there are none."""
    family = GaugeMetricFamily(name, text, labels=names)
    for labels in dict.fromkeys(tuple(row) for row in rows):
        family.add_metric(labels, 1)
    if family.samples:
        yield family
