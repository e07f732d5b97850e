"""Events of the kernel log."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from monitor.base.metrics import label
from monitor.facts import NodeSnapshot

_SKIPPED = "Lines that were too many to classify, or overwritten by the kernel before they were read."


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Events by kind; none if the log cannot be read."""
    facts = snapshot.kernel
    if facts is None:
        return
    events = CounterMetricFamily("gpuwarden_kernel_events", "Events of the kernel log by kind.", labels=("kind",))
    last = GaugeMetricFamily(
        "gpuwarden_kernel_event_last_seconds", "When the kind was last seen (Unix time).", labels=("kind",)
    )
    for count in facts.counts:
        events.add_metric((label(count.kind),), count.count)
        last.add_metric((label(count.kind),), count.last_at)
    yield from (family for family in (events, last) if family.samples)
    yield CounterMetricFamily("gpuwarden_kernel_lines_skipped", _SKIPPED, facts.skipped_lines)
