"""Why a job hardly uses its GPUs, from the resource usage of its containers and node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuView
from monitor.facts.gpu import GpuFact
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text

CAUSES = ("cpu-limit", "shm-small", "io-wait", "data-loading", "low-batch", "unknown")
CPU_FULL_RATIO = 0.9
SHM_FULL_RATIO = 0.85
SHM_DEFAULT_BYTES = 64 * 1024**2  # the runtimes' default
BURST_RATIO = 0.8  # a GPU that peaks here could run at it all the time, given the data
LOW_MEMORY_RATIO = 0.3


@dataclass(frozen=True)
class UnderusedPod:
    """A pod with its GPUs and their mean utilization over a window."""

    pod: PodFact
    gpus: list[GpuView]
    mean: float
    window: float
    io_wait_cores: float


def diagnose_underuse(
    job: UnderusedPod, facts: Mapping[tuple[str, int], GpuFact], agent: AgentFact | None, waiting: Mapping[str, float]
) -> tuple[str, tuple[Text, ...]]:
    """The most likely cause that the facts support, with these facts as evidence."""
    snapshot = agent.snapshot if agent else None
    ids = {status.container_id for status in job.pod.statuses if status.container_id}
    if snapshot is not None and (note := _cpu(snapshot, ids)):
        return "cpu-limit", (note,)
    if snapshot is not None and (note := _shm(snapshot, ids)):
        return "shm-small", (note,)
    cores = waiting.get(job.gpus[0].node, 0.0)
    if cores >= job.io_wait_cores:
        return "io-wait", (Text(key="gpu-idle.node-waits", values={"cores": round(cores, 1)}),)
    return _by_gpus(job, facts)


def _cpu(snapshot: NodeSnapshot, ids: set[str]) -> Text | None:
    for use in snapshot.container_usage or ():
        cores, limit = use.cpu_cores, use.cpu_limit_cores
        if use.container_id in ids and cores and limit and cores >= CPU_FULL_RATIO * limit:
            return Text(key="gpu-underused.cpu", values={"cores": round(cores, 1), "limit": round(limit, 1)})
    return None


def _shm(snapshot: NodeSnapshot, ids: set[str]) -> Text | None:
    """Evidence that a /dev/shm is nearly full, or too small for data loaders."""
    for shm in snapshot.shm or ():
        full = shm.used_bytes >= SHM_FULL_RATIO * shm.size_bytes
        if shm.container_id in ids and shm.size_bytes and (full or shm.size_bytes <= SHM_DEFAULT_BYTES):
            return Text(key="gpu-underused.shm", values={"used": shm.used_bytes, "size": shm.size_bytes})
    return None


def _by_gpus(job: UnderusedPod, facts: Mapping[tuple[str, int], GpuFact]) -> tuple[str, tuple[Text, ...]]:
    """Cause from the GPUs' figures: work in bursts, or small batches."""
    known = [facts[key] for gpu in job.gpus if (key := (gpu.node, gpu.index)) in facts]
    peak = max((fact.utilization_peak_ratio for fact in known if fact.utilization_peak_ratio is not None), default=None)
    if peak is not None and peak >= BURST_RATIO:
        return "data-loading", (Text(key="gpu-underused.bursts", values={"ratio": peak}),)
    used = sum(gpu.memory_used_bytes or 0 for gpu in job.gpus)
    total = sum(gpu.memory_total_bytes or 0 for gpu in job.gpus)
    if total and used < LOW_MEMORY_RATIO * total:
        return "low-batch", (Text(key="gpu-underused.memory", values={"used": used, "size": total}),)
    return "unknown", ()
