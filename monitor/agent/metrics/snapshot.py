"""The snapshot as a whole: its time, and which parts are known.

A part that is known to be empty has no other series.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from monitor.agent.metrics.label_values import infos
from monitor.facts import NodeSnapshot

PARTS = (
    "host", "gpu", "gpu_processes", "xid", "kernel", "pod_devices", "containers", "container_usage", "shm", "logs",
    "disk", "disk_io", "mounts", "images", "runtime_usage", "kubelet", "probes", "actions",
)  # fmt: skip


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Time of the snapshot, and its known parts."""
    yield GaugeMetricFamily(
        "gpuwarden_snapshot_time_seconds", "Time of the snapshot by the node's clock (Unix time).", snapshot.at
    )
    known = [part for part in PARTS if getattr(snapshot, part) is not None]
    if snapshot.kubelet is not None and snapshot.kubelet.eviction_hard is not None:
        known.append("kubelet_eviction_hard")
    text = "A part of the snapshot that is known; one without other series is empty."
    yield from infos("gpuwarden_part_known", text, ("part",), [(part,) for part in known])
