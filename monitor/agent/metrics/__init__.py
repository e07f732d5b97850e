"""Snapshot -> Prometheus text. Pure: no clock, no file, nothing remembered but what was rendered last.

Each module here turns some parts of the snapshot into metric families. Conventions: base units, `_bytes`, `_ratio`,
`_seconds`, `_total`, `_info`; a label that is not known is empty; a value that is not known has no sample; a thing that
is gone has no series. Pods are named on series of processes, containers and allocations, never on series of cards: a
card may be shared, and a label that lags behind its card would blame the wrong pod.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client.core import Metric

from monitor.agent.metrics import actions, agent, containers, disks, gpus, host, images, kubelet, processes
from monitor.agent.metrics import snapshot as whole
from monitor.base.metrics import text_of
from monitor.facts import NodeSnapshot

log = logging.getLogger(__name__)
Render = Callable[[NodeSnapshot], Iterable[Metric]]

# The parts of the snapshot that each rendering reads, and the rendering.
PIECES: tuple[tuple[tuple[str, ...], Render], ...] = (
    (("at", *whole.PARTS), whole.families),
    (("collectors", "boot_id"), agent.families),
    (("gpu", "xid"), gpus.families),
    (("gpu", "gpu_processes", "pod_devices", "containers"), processes.families),
    (("host",), host.families),
    (("containers", "container_usage", "shm", "logs", "runtime_usage"), containers.families),
    (("disk", "disk_io", "mounts", "probes"), disks.families),
    (("images", "runtime_usage"), images.families),
    (("kubelet",), kubelet.families),
    (("actions",), actions.families),
)


class Exposition:
    """Renders snapshots, a piece only when one of the parts that it reads has changed."""

    def __init__(self) -> None:
        self._rendered: dict[Render, tuple[tuple[Any, ...], bytes]] = {}

    def render(self, snapshot: NodeSnapshot) -> bytes:
        """Given a snapshot, return it as Prometheus text."""
        return b"".join(self._piece(snapshot, parts, render) for parts, render in PIECES)

    def _piece(self, snapshot: NodeSnapshot, parts: tuple[str, ...], render: Render) -> bytes:
        inputs = tuple(getattr(snapshot, part) for part in parts)
        before = self._rendered.get(render)
        # Facts never change, so the same objects mean the same text.
        if before is not None and all(old is new for old, new in zip(before[0], inputs, strict=True)):
            return before[1]
        text = self._text(render, snapshot)
        self._rendered[render] = (inputs, text)
        return text

    def _text(self, render: Render, snapshot: NodeSnapshot) -> bytes:
        """Render one piece. A piece that cannot be rendered is reported as such, and costs the scrape nothing else."""
        try:
            return text_of(render(snapshot))
        except Exception:
            piece = render.__module__.rpartition(".")[2]
            log.exception("cannot render the metrics of %s", piece)
            # One family name for all pieces would appear twice in the text, so each piece has its own.
            name = f"gpuwarden_exposition_{piece}_failed"
            return f"# HELP {name} Could not be rendered.\n# TYPE {name} gauge\n{name} 1\n".encode()
