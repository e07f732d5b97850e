"""The current figures of a cluster, the most useful first: there may not be room for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from monitor.base.text import shorten_name
from monitor.detect.lib.storage import used_ratio
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView, PodView
from monitor.facts.gpu import GpuFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.workload import HostFact
from monitor.history.model import CLUSTER, MAX_NAME_CHARS, HistorySubject, Sample, disk_name

MAX_DISKS_PER_NODE = 32
_IDLE_MODES = ("idle", "iowait")
_HELD = (GpuState.BUSY, GpuState.IDLE_HELD)


@dataclass(frozen=True)
class HostRates:
    """Load of a node since the previous facts about it."""

    host: HostFact
    cpu: float | None = None
    received: float | None = None  # bytes per second
    transmitted: float | None = None


class Sampler:
    """Reads samples from one view after the other; remembers totals of nodes, from which rates follow."""

    def __init__(self) -> None:
        self._rates: dict[str, HostRates] = {}

    def samples(self, view: ClusterView, agents: Iterable[AgentFact]) -> Iterator[Sample]:
        """The figures of all entities."""
        snapshots = {
            agent.node: agent.snapshot
            for agent in agents
            if agent.node is not None and agent.snapshot is not None and agent.silent_since is None
        }
        self._rates = {
            node: _rates(self._rates.get(node), snapshot.host)
            for node, snapshot in snapshots.items()
            if snapshot.host is not None
        }
        for subject, name, values in self._of_all(view, snapshots):
            yield subject, shorten_name(name, MAX_NAME_CHARS), values

    def _of_all(self, view: ClusterView, snapshots: dict[str, NodeSnapshot]) -> Iterator[Sample]:
        loads: defaultdict[str, list[float]] = defaultdict(list)  # by node
        for gpu in view.gpus:
            if gpu.utilization_ratio is not None:
                loads[gpu.node].append(gpu.utilization_ratio)
        yield _cluster(view, loads)
        for node in view.nodes:
            yield self._node(node, _mean(loads.get(node.name, ())), snapshots.get(node.name))
        queue_loads = _queue_loads(view.gpus)
        for queue in view.queues:
            values = (_mean(queue_loads.get(queue.name, ())), queue.used, queue.waiting)
            yield HistorySubject.QUEUE, queue.name, values
        for user, usage in view.users.items():
            yield HistorySubject.USER, user, (usage.gpu_utilization_ratio, usage.gpus)
        facts = {node: _gpu_facts(snapshot) for node, snapshot in snapshots.items()}
        for gpu in view.gpus:
            yield _gpu(gpu, facts.get(gpu.node, {}).get(gpu.index))
        for name, snapshot in snapshots.items():
            for disk in (snapshot.disk or ())[:MAX_DISKS_PER_NODE]:
                yield HistorySubject.DISK, disk_name(name, disk.mount), (used_ratio(disk),)
        yield from _workloads(view.pods)

    def _node(self, node: NodeView, load: float | None, snapshot: NodeSnapshot | None) -> Sample:
        rates = self._rates.get(node.name)
        memory, shm = None, None
        if rates is not None:
            host = rates.host
            if host.memory_total_bytes:
                memory = 1.0 - host.memory_available_bytes / host.memory_total_bytes
        if snapshot is not None and snapshot.shm is not None:
            shm = float(sum({shm.device: shm.used_bytes for shm in snapshot.shm}.values()))
        cpu, received, transmitted = (None,) * 3 if rates is None else (rates.cpu, rates.received, rates.transmitted)
        return HistorySubject.NODE, node.name, (load, node.free, cpu, memory, shm, received, transmitted)


def _rates(before: HostRates | None, host: HostFact) -> HostRates:
    """Rates since the facts before; the same ones until there are new facts."""
    if before is None or before.host is host:
        return before or HostRates(host)
    total = sum(host.cpu_seconds_total.values()) - sum(before.host.cpu_seconds_total.values())
    idle = _idle_seconds(host) - _idle_seconds(before.host)
    if total <= 0:  # the node was restarted
        return HostRates(host)
    old, seconds = before.host, total / max(1, host.cpus)
    return HostRates(
        host,
        cpu=min(1.0, max(0.0, 1.0 - idle / total)),
        received=_rate(old.network_received_bytes_total, host.network_received_bytes_total, seconds),
        transmitted=_rate(old.network_transmitted_bytes_total, host.network_transmitted_bytes_total, seconds),
    )


def _rate(before: int | None, after: int | None, seconds: float) -> float | None:
    """Increase per second; None if it is not known, or the counter started over."""
    return None if before is None or after is None or after < before else (after - before) / seconds


def _idle_seconds(host: HostFact) -> float:
    return sum(host.cpu_seconds_total.get(mode, 0.0) for mode in _IDLE_MODES)


def _cluster(view: ClusterView, loads: dict[str, list[float]]) -> Sample:
    held = sum(gpu.state in _HELD for gpu in view.gpus)
    free = sum(capacity.free for capacity in view.free)
    waiting = sum(queue.waiting for queue in view.queues)
    load = _mean([load for node_loads in loads.values() for load in node_loads])
    return HistorySubject.CLUSTER, CLUSTER, (load, held, free, waiting)


def _gpu(gpu: GpuView, fact: GpuFact | None) -> Sample:
    memory = None
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes:
        memory = gpu.memory_used_bytes / gpu.memory_total_bytes
    power, temperature = (None, None) if fact is None else (fact.power_watts, fact.temperature_celsius)
    return HistorySubject.GPU, f"{gpu.node}/{gpu.index}", (gpu.utilization_ratio, memory, power, temperature)


def _gpu_facts(snapshot: NodeSnapshot) -> dict[int, GpuFact]:
    return {gpu.index: gpu for gpu in snapshot.gpu.gpus} if snapshot.gpu is not None else {}


def _queue_loads(gpus: Iterable[GpuView]) -> dict[str, list[float]]:
    """Utilization of the GPUs that live pods of each queue hold."""
    loads: defaultdict[str, list[float]] = defaultdict(list)
    for gpu in gpus:
        if gpu.utilization_ratio is not None:
            for queue in {holder.queue for holder in gpu.holders if holder.live and holder.queue is not None}:
                loads[queue].append(gpu.utilization_ratio)
    return loads


def _workloads(pods: Iterable[PodView]) -> Iterator[Sample]:
    """Jobs, then their pods: those that hold or use GPUs."""
    running = [
        pod
        for pod in pods
        if pod.node is not None and (pod.requested_gpus or pod.usage.gpu_utilization_ratio is not None)
    ]
    jobs: defaultdict[str, list[PodView]] = defaultdict(list)
    for pod in running:
        if pod.identity.job is not None:
            jobs[f"{pod.namespace}/{pod.identity.job}"].append(pod)
    for job, members in jobs.items():
        loads = [pod.usage.gpu_utilization_ratio for pod in members if pod.usage.gpu_utilization_ratio is not None]
        yield HistorySubject.JOB, job, (_mean(loads), sum(pod.requested_gpus for pod in members))
    for pod in running:
        values = (pod.usage.gpu_utilization_ratio, pod.requested_gpus)
        yield HistorySubject.POD, f"{pod.namespace}/{pod.name}", values


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
