"""The snapshot as a whole: when it was taken, and what of it is known.

A part that is known to be empty has no series of its own; that it is known is told here.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from monitor.agent.metrics.label_values import infos
from monitor.facts import NodeSnapshot

PARTS = (
    "host", "gpu", "gpu_processes", "xid", "pod_devices", "containers", "container_usage", "shm", "logs", "disk",
    "disk_io", "mounts", "images", "runtime_usage", "kubelet", "probes", "actions",
)  # fmt: skip


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Yield the time of the snapshot, and its parts that are known right now."""
    yield GaugeMetricFamily(
        "gpuwarden_snapshot_time_seconds", "When this was read, by the node's clock (Unix time).", snapshot.at
    )
    known = [part for part in PARTS if getattr(snapshot, part) is not None]
    if snapshot.kubelet is not None and snapshot.kubelet.eviction_hard is not None:
        known.append("kubelet_eviction_hard")
    text = "A part of the node that is known right now; one that is known and has no series is empty."
    yield from infos("gpuwarden_part_known", text, ("part",), [(part,) for part in known])
