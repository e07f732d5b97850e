"""What pods use, out of their nodes' snapshots. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from operator import attrgetter

from monitor.facts.cluster import PodView, UsageView
from monitor.facts.node import NodeSnapshot

SIZES = ("gpu_memory_bytes", "shm_bytes", "memory_bytes", "disk_bytes")
MILLION = 1_000_000
_figures = attrgetter("gpu_utilization_ratio", "cpu_cores", *SIZES)


@dataclass
class _Sum:
    """Adds up figures of which some are not known: the sum of no known figure is not known."""

    utilization: list[float] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, value: float | None) -> None:
        if value is not None:
            self.figures[name] = self.figures.get(name, 0) + value

    def view(self) -> UsageView:
        whole = {name: round(value) for name, value in self.figures.items() if name != "cpu_cores"}
        return UsageView(
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


class Tally:
    """What pods use together; of utilisation, the mean. They come and go one at a time, the others stay added up.

    It counts whole millionths: what is taken away leaves exactly what was there before, in whatever order they came.
    """

    def __init__(self) -> None:
        self.pods = 0
        self._sums = [0] * (3 + len(SIZES))
        self._known = [0] * (3 + len(SIZES))

    def add(self, pod: PodView, times: int = 1) -> None:
        """Add a pod, or take it away (-1). One that is on no node uses nothing."""
        self.pods += times
        if pod.node is None:
            return
        for place, figure in enumerate((pod.requested_gpus, *_figures(pod.usage))):
            if figure is not None:
                self._sums[place] += times * round(figure * MILLION)
                self._known[place] += times

    def view(self) -> UsageView:
        gpus, ratios, cores, *sizes = self._sums
        _, with_ratio, with_cores, *with_size = self._known
        return UsageView(
            gpus=gpus / MILLION,
            gpu_utilization_ratio=ratios / with_ratio / MILLION if with_ratio else None,
            cpu_cores=cores / MILLION if with_cores else None,
            **{name: size // MILLION for name, size, known in zip(SIZES, sizes, with_size, strict=True) if known},
        )
