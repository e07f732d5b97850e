"""Metrics of unhealthy pods and their causes."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import Metric

from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short
from monitor.daemon.pod_health import PodHealth, UnhealthyPod

PODS: MetricTable[UnhealthyPod] = MetricTable(
    ("namespace", "pod", "user", "workload", "queue", "status", "cause"),
    (("gpuwarden_pod_explained", "An unhealthy pod, with its cause.", lambda _: 1),),
)
COUNTS: MetricTable[int] = MetricTable(
    ("status", "cause"), (("gpuwarden_pods_explained", "Unhealthy pods by status and cause.", lambda count: count),)
)
OMITTED: MetricTable[int] = MetricTable(
    (), (("gpuwarden_pods_not_explained", "Pods omitted by the limits on listed pods and CPU time.", lambda n: n),)
)
TABLES = (PODS, COUNTS, OMITTED)


def families(health: PodHealth | None) -> Iterable[Metric]:
    """Unhealthy pods; nothing while their health is unknown."""
    if health is None:
        return
    yield from PODS.families((_labels(unhealthy), unhealthy) for unhealthy in health.pods)
    yield from COUNTS.families(
        ((short(status), short(cause)), count) for (status, cause), count in health.counts.items()
    )
    yield from OMITTED.families([((), health.omitted)])


def _labels(unhealthy: UnhealthyPod) -> tuple[str, ...]:
    pod = unhealthy.pod
    labels = (pod.namespace, pod.name, pod.user, pod.job, pod.queue, unhealthy.status, unhealthy.cause)
    return tuple(short(label) for label in labels)
