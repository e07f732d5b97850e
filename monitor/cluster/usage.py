"""What pods use, out of their nodes' snapshots. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from monitor.facts.cluster import PodView, UsageView
from monitor.facts.node import NodeSnapshot


@dataclass
class _Sum:
    """Adds up figures of which some are not known: the sum of no known figure is not known."""

    gpus: float = 0
    utilization: list[float] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, value: float | None) -> None:
        if value is not None:
            self.figures[name] = self.figures.get(name, 0) + value

    def view(self) -> UsageView:
        whole = {name: round(value) for name, value in self.figures.items() if name != "cpu_cores"}
        return UsageView(
            gpus=self.gpus,
            gpu_utilization_ratio=sum(self.utilization) / len(self.utilization) if self.utilization else None,
            cpu_cores=self.figures.get("cpu_cores"),
            **whole,
        )


def pod_usage(snapshot: NodeSnapshot) -> dict[str, UsageView]:
    """Given a node's snapshot, return what each pod on it uses, by pod uid."""
    sums: defaultdict[str, _Sum] = defaultdict(_Sum)
    pod_of = {c.id: c.pod_uid for c in snapshot.containers or () if c.pod_uid is not None}
    _add_gpu(snapshot, sums)
    for use in snapshot.container_usage or ():
        if pod := pod_of.get(use.container_id):
            sums[pod].add("cpu_cores", use.cpu_cores)
            sums[pod].add("memory_bytes", use.memory_bytes)
    _add_shm(snapshot, pod_of, sums)
    for log in snapshot.logs or ():
        if pod := pod_of.get(log.container_id):
            sums[pod].add("disk_bytes", log.size_bytes)
    for runtime in snapshot.runtime_usage or ():
        for container, size in runtime.writable.items():
            if pod := pod_of.get(container):
                sums[pod].add("disk_bytes", size)
    return {pod: total.view() for pod, total in sums.items()}


def _add_gpu(snapshot: NodeSnapshot, sums: defaultdict[str, _Sum]) -> None:
    load = {gpu.uuid: gpu.utilization_ratio for gpu in snapshot.gpu.gpus} if snapshot.gpu else {}
    seen: set[tuple[str, str]] = set()
    for process in snapshot.gpu_processes or ():
        if process.pod_uid is None:
            continue
        sums[process.pod_uid].add("gpu_memory_bytes", process.memory_bytes)
        card = (process.pod_uid, process.gpu_uuid)
        ratio = load.get(process.gpu_uuid)
        if card not in seen and ratio is not None:
            sums[process.pod_uid].utilization.append(ratio)
        seen.add(card)


def _add_shm(snapshot: NodeSnapshot, pod_of: dict[str, str], sums: defaultdict[str, _Sum]) -> None:
    """Containers of one pod share one /dev/shm: it is counted once. The host's own, shared by some, is nobody's."""
    host = {shm.device for shm in snapshot.shm or () if shm.container_id is None}
    seen: set[tuple[str, int]] = set()
    for shm in snapshot.shm or ():
        pod = pod_of.get(shm.container_id or "")
        if pod and shm.device not in host and (pod, shm.device) not in seen:
            seen.add((pod, shm.device))
            sums[pod].add("shm_bytes", shm.used_bytes)


def total_usage(pods: Iterable[PodView]) -> UsageView:
    """Given pods, return what they use together; of utilisation, the mean."""
    total = _Sum()
    for pod in pods:
        use = pod.usage
        total.gpus += pod.requested_gpus
        if use.gpu_utilization_ratio is not None:
            total.utilization.append(use.gpu_utilization_ratio)
        for name in ("gpu_memory_bytes", "shm_bytes", "cpu_cores", "memory_bytes", "disk_bytes"):
            total.add(name, getattr(use, name))
    return total.view()
