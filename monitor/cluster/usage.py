"""Resource usage of pods, from the snapshots of their nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeVar

from monitor.facts.cluster import PodView, UsageView
from monitor.facts.node import NodeSnapshot

SIZE_FIELDS = ("gpu_memory_bytes", "shm_bytes", "memory_bytes", "disk_bytes")
MICRO_FACTOR = 1_000_000  # sums are kept in millionths
_sizes = attrgetter(*SIZE_FIELDS)
Number = TypeVar("Number", int, float)


@dataclass(slots=True)
class _PodTotals:
    """Usage of one pod; `utilization` has one entry per GPU."""

    utilization: list[float] = field(default_factory=list)
    cpu_cores: float | None = None
    gpu_memory_bytes: int | None = None
    shm_bytes: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None

    def view(self) -> UsageView:
        return UsageView(
            gpu_utilization_ratio=sum(self.utilization) / len(self.utilization) if self.utilization else None,
            cpu_cores=self.cpu_cores,
            gpu_memory_bytes=self.gpu_memory_bytes,
            shm_bytes=self.shm_bytes,
            memory_bytes=self.memory_bytes,
            disk_bytes=self.disk_bytes,
        )


def _plus(total: Number | None, value: Number | None) -> Number | None:
    """Sum of the known values; None if no value is known."""
    if value is None:
        return total
    return value if total is None else total + value


def pod_usage(snapshot: NodeSnapshot) -> dict[str, UsageView]:
    """Usage of each pod on a node, by pod uid."""
    sums: defaultdict[str, _PodTotals] = defaultdict(_PodTotals)
    pod_of = {c.id: c.pod_uid for c in snapshot.containers or () if c.pod_uid is not None}
    _add_gpu(snapshot, sums)
    for use in snapshot.container_usage or ():
        if pod := pod_of.get(use.container_id):
            total = sums[pod]
            total.cpu_cores = _plus(total.cpu_cores, use.cpu_cores)
            total.memory_bytes = _plus(total.memory_bytes, use.memory_bytes)
    _add_shm(snapshot, pod_of, sums)
    for log in snapshot.logs or ():
        if pod := pod_of.get(log.container_id):
            sums[pod].disk_bytes = _plus(sums[pod].disk_bytes, log.size_bytes)
    for runtime in snapshot.runtime_usage or ():
        for container, size in runtime.writable.items():
            if pod := pod_of.get(container):
                sums[pod].disk_bytes = _plus(sums[pod].disk_bytes, size)
    return {pod: total.view() for pod, total in sums.items()}


def _add_gpu(snapshot: NodeSnapshot, sums: defaultdict[str, _PodTotals]) -> None:
    load = {gpu.uuid: gpu.utilization_ratio for gpu in snapshot.gpu.gpus} if snapshot.gpu else {}
    seen: set[tuple[str, str]] = set()
    for process in snapshot.gpu_processes or ():
        if process.pod_uid is None:
            continue
        total = sums[process.pod_uid]
        total.gpu_memory_bytes = _plus(total.gpu_memory_bytes, process.memory_bytes)
        pod_gpu = (process.pod_uid, process.gpu_uuid)
        ratio = load.get(process.gpu_uuid)
        if pod_gpu not in seen and ratio is not None:
            total.utilization.append(ratio)
        seen.add(pod_gpu)


def _add_shm(snapshot: NodeSnapshot, pod_of: dict[str, str], sums: defaultdict[str, _PodTotals]) -> None:
    """Count /dev/shm once per pod, whose containers share it. The /dev/shm of the host belongs to no pod."""
    host = {shm.device for shm in snapshot.shm or () if shm.container_id is None}
    seen: set[tuple[str, int]] = set()
    for shm in snapshot.shm or ():
        pod = pod_of.get(shm.container_id or "")
        if pod and shm.device not in host and (pod, shm.device) not in seen:
            seen.add((pod, shm.device))
            sums[pod].shm_bytes = _plus(sums[pod].shm_bytes, shm.used_bytes)


class UsageTotals:
    """Running totals over pods that come and go; of utilisation, the mean.

    Totals are integers (bytes and millionths), so that removing a pod restores the previous value exactly, in any
    order.
    """

    def __init__(self) -> None:
        self.pods = 0
        self._gpus = self._ratios = self._cores = 0  # millionths
        self._shares: Counter[str] = Counter()  # millionths, by resource
        self._with_ratio = self._with_cores = 0
        self._sizes = [0] * len(SIZE_FIELDS)
        self._with_size = [0] * len(SIZE_FIELDS)

    def add(self, pod: PodView, times: int = 1) -> None:
        """Add a pod, or remove it (-1). A pod without a node uses nothing."""
        self.pods += times
        if pod.node is None:
            return
        usage = pod.usage
        if pod.requested_gpus:
            self._gpus += times * round(pod.requested_gpus * MICRO_FACTOR)
        for name, amount in pod.gpu_shares.items():
            self._shares[name] += times * round(amount * MICRO_FACTOR)
        if usage.gpu_utilization_ratio is not None:
            self._ratios += times * round(usage.gpu_utilization_ratio * MICRO_FACTOR)
            self._with_ratio += times
        if usage.cpu_cores is not None:
            self._cores += times * round(usage.cpu_cores * MICRO_FACTOR)
            self._with_cores += times
        for position, size in enumerate(_sizes(usage)):
            if size is not None:
                self._sizes[position] += times * size
                self._with_size[position] += times

    def view(self) -> UsageView:
        sizes = zip(SIZE_FIELDS, self._sizes, self._with_size, strict=True)
        return UsageView(
            gpus=self._gpus / MICRO_FACTOR,
            gpu_shares={name: amount / MICRO_FACTOR for name, amount in sorted(self._shares.items()) if amount},
            gpu_utilization_ratio=self._ratios / self._with_ratio / MICRO_FACTOR if self._with_ratio else None,
            cpu_cores=self._cores / MICRO_FACTOR if self._with_cores else None,
            **{name: size for name, size, known in sizes if known},
        )
