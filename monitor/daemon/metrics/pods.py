"""Pods that are not well, and why."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import Metric

from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short
from monitor.daemon.pod_health import PodHealth, UnhealthyPod

PODS: MetricTable[UnhealthyPod] = MetricTable(
    ("namespace", "pod", "user", "workload", "queue", "status", "cause"),
    (("gpuwarden_pod_explained", "A pod that is not well, and why.", lambda _: 1),),
)
COUNTS: MetricTable[int] = MetricTable(
    ("status", "cause"), (("gpuwarden_pods_explained", "Pods that are not well, by the reason.", lambda count: count),)
)
BEYOND: MetricTable[int] = MetricTable(
    (), (("gpuwarden_pods_not_explained", "Pods beyond the number or time that there is for them.", lambda n: n),)
)
TABLES = (PODS, COUNTS, BEYOND)


def families(unwell: PodHealth | None) -> Iterable[Metric]:
    """Yield why pods are not well; nothing while nobody knows."""
    if unwell is None:
        return
    yield from PODS.families((_labels(each), each) for each in unwell.pods)
    yield from COUNTS.families((tuple(short(word) for word in why), count) for why, count in unwell.counts.items())
    yield from BEYOND.families([((), unwell.omitted)])


def _labels(each: UnhealthyPod) -> tuple[str, ...]:
    pod = each.pod
    words = (pod.namespace, pod.name, pod.user, pod.job, pod.queue, each.status, each.cause)
    return tuple(short(word) for word in words)
