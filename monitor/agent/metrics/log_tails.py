"""Containers that failed, by what the end of their log says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from monitor.base.metrics import label
from monitor.facts import NodeSnapshot


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Failed containers by class; none if logs cannot be read."""
    if snapshot.log_tails is None:
        return
    failed = GaugeMetricFamily(
        "gpuwarden_failed_containers",
        "Containers on the node that exited with an error, by what the end of their log says.",
        labels=("cause",),
    )
    for cause, count in sorted(Counter(tail.cause for tail in snapshot.log_tails).items()):
        failed.add_metric((label(cause),), count)
    if failed.samples:
        yield failed
