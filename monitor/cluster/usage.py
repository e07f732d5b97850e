"""Resource usage of pods, from the snapshots of their nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter, is_
from typing import TypeVar

import msgspec

from monitor.facts.cluster import PodView, UsageView
from monitor.facts.node import NodeSnapshot

SIZE_FIELDS = ("gpu_memory_bytes", "shm_bytes", "memory_bytes", "disk_bytes")
MICRO_FACTOR = 1_000_000  # sums are kept in millionths
_sizes = attrgetter(*SIZE_FIELDS)
_rest = attrgetter("cpu_cores", *SIZE_FIELDS)  # all but the utilization of GPUs
# Parts of a snapshot that determine the usage, besides the GPUs.
_other_parts = attrgetter("containers", "container_usage", "shm", "logs", "runtime_usage", "gpu_processes")
Number = TypeVar("Number", int, float)


@dataclass(slots=True)
class _PodTotals:
    """Usage of one pod."""

    gpu_utilization_ratio: float | None = None
    cpu_cores: float | None = None
    gpu_memory_bytes: int | None = None
    shm_bytes: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None

    def view(self) -> UsageView:
        return UsageView(
            gpu_utilization_ratio=self.gpu_utilization_ratio,
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


def next_pod_usage(
    snapshot: NodeSnapshot | None, before: NodeSnapshot | None, known: Mapping[str, UsageView]
) -> dict[str, UsageView]:
    """The same as `pod_usage`, given the usage before: often only the utilization of GPUs has changed."""
    if snapshot is None:
        return {}
    if before is None or not all(map(is_, _other_parts(before), _other_parts(snapshot))):
        return pod_usage(snapshot)
    ratios = _gpu_ratios(snapshot)
    return {
        pod: usage
        if usage.gpu_utilization_ratio == (ratio := ratios.get(pod))
        else msgspec.structs.replace(usage, gpu_utilization_ratio=ratio)
        for pod, usage in known.items()
    }


def pod_usage(snapshot: NodeSnapshot) -> dict[str, UsageView]:
    """Usage of each pod on a node, by pod uid."""
    sums: defaultdict[str, _PodTotals] = defaultdict(_PodTotals)
    pod_of = {c.id: c.pod_uid for c in snapshot.containers or () if c.pod_uid is not None}
    _add_gpus(snapshot, sums)
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


def _add_gpus(snapshot: NodeSnapshot, sums: defaultdict[str, _PodTotals]) -> None:
    for process in snapshot.gpu_processes or ():
        if process.pod_uid is not None:
            total = sums[process.pod_uid]
            total.gpu_memory_bytes = _plus(total.gpu_memory_bytes, process.memory_bytes)
    for pod, ratio in _gpu_ratios(snapshot).items():
        sums[pod].gpu_utilization_ratio = ratio


def _gpu_ratios(snapshot: NodeSnapshot) -> dict[str, float]:
    """Mean utilization of the GPUs on which each pod has processes."""
    load = {gpu.uuid: gpu.utilization_ratio for gpu in snapshot.gpu.gpus} if snapshot.gpu else {}
    ratios: defaultdict[str, dict[str, float]] = defaultdict(dict)  # by pod and GPU
    for process in snapshot.gpu_processes or ():
        ratio = load.get(process.gpu_uuid)
        if process.pod_uid is not None and ratio is not None:
            ratios[process.pod_uid][process.gpu_uuid] = ratio
    return {pod: sum(by_gpu.values()) / len(by_gpu) for pod, by_gpu in ratios.items()}


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
        if pod.requested_gpus:
            self._gpus += times * round(pod.requested_gpus * MICRO_FACTOR)
        for name, amount in pod.gpu_shares.items():
            self._shares[name] += times * round(amount * MICRO_FACTOR)
        self._add_ratio(pod.usage.gpu_utilization_ratio, times)
        self._add_rest(pod.usage, times)

    def replace(self, before: UsageView, after: UsageView) -> None:
        """Replace the usage of a pod; often only its utilization changes."""
        self._add_ratio(before.gpu_utilization_ratio, -1)
        self._add_ratio(after.gpu_utilization_ratio, 1)
        if _rest(before) != _rest(after):
            self._add_rest(before, -1)
            self._add_rest(after, 1)

    def _add_ratio(self, ratio: float | None, times: int) -> None:
        if ratio is not None:
            self._ratios += times * round(ratio * MICRO_FACTOR)
            self._with_ratio += times

    def _add_rest(self, usage: UsageView, times: int) -> None:
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
