"""A snapshot as Prometheus text.

Each module renders some parts of the snapshot as metric families. Conventions: base units, `_bytes`, `_ratio`,
`_seconds`, `_total`, `_info`; an unknown label is empty; an unknown value has no sample; what no longer exists has no
series. Series of processes, containers and allocations have pod labels, series of GPUs do not: a GPU may be shared, and
an outdated label would blame the wrong pod.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client.core import Metric

from monitor.agent.metrics import (
    actions,
    agent,
    containers,
    disks,
    gpus,
    host,
    images,
    kernel,
    kubelet,
    log_tails,
    processes,
)
from monitor.agent.metrics import snapshot as snapshot_metrics
from monitor.base.metrics import text_of
from monitor.facts import NodeSnapshot

log = logging.getLogger(__name__)
Render = Callable[[NodeSnapshot], Iterable[Metric]]

# Each function that renders a group of families, with the parts of the snapshot it reads.
GROUPS: tuple[tuple[tuple[str, ...], Render], ...] = (
    (("at", *snapshot_metrics.PARTS), snapshot_metrics.families),
    (("collectors", "boot_id"), agent.families),
    (("gpu", "xid"), gpus.families),
    (("gpu", "gpu_processes", "pod_devices", "containers"), processes.families),
    (("host",), host.families),
    (("containers", "container_usage", "shm", "logs", "runtime_usage"), containers.families),
    (("disk", "disk_io", "mounts", "probes"), disks.families),
    (("images", "runtime_usage"), images.families),
    (("kernel",), kernel.families),
    (("log_tails",), log_tails.families),
    (("kubelet",), kubelet.families),
    (("actions",), actions.families),
)


class AgentMetrics:
    """Renders snapshots, each group only when a part that it reads has changed."""

    def __init__(self) -> None:
        self._rendered: dict[Render, tuple[tuple[Any, ...], bytes]] = {}

    def render(self, snapshot: NodeSnapshot) -> bytes:
        """Snapshot as Prometheus text."""
        return b"".join(self._group(snapshot, parts, render) for parts, render in GROUPS)

    def _group(self, snapshot: NodeSnapshot, parts: tuple[str, ...], render: Render) -> bytes:
        inputs = tuple(getattr(snapshot, part) for part in parts)
        before = self._rendered.get(render)
        # Facts are immutable, so the same objects have the same text.
        if before is not None and all(old is new for old, new in zip(before[0], inputs, strict=True)):
            return before[1]
        text = self._text(render, snapshot)
        self._rendered[render] = (inputs, text)
        return text

    def _text(self, render: Render, snapshot: NodeSnapshot) -> bytes:
        """Render one group. A group that cannot be rendered is reported by a metric and does not fail the scrape."""
        try:
            return text_of(render(snapshot))
        except Exception:
            group = render.__module__.rpartition(".")[2]
            log.exception("cannot render the metrics of %s", group)
            # The same family must not appear twice in the text, so each group has its own.
            name = f"gpuwarden_exposition_{group}_failed"
            return f"# HELP {name} Could not be rendered.\n# TYPE {name} gauge\n{name} 1\n".encode()
