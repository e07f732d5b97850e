"""What components say, as the value of a label: bounded, because metric stores refuse or cut what is longer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from monitor.base.metrics import label

LONGEST = 300  # characters; the strictest of the stores takes 1024 bytes


def said(text: str | None) -> str:
    """Given what somebody says, return it as the value of a label: empty when nothing is said."""
    return label(text)[:LONGEST]


def infos(name: str, text: str, names: Sequence[str], things: Iterable[Sequence[str]]) -> Iterable[Metric]:
    """Given things that are all labels, yield the family with a 1 for each; nothing if there are none."""
    family = GaugeMetricFamily(name, text, labels=names)
    for labels in dict.fromkeys(tuple(each) for each in things):
        family.add_metric(labels, 1)
    if family.samples:
        yield family
