"""The snapshot: everything one agent knows about its node at one moment. This is the wire format."""

from __future__ import annotations

from monitor.facts.actions import ActionsFact
from monitor.facts.base import Fact
from monitor.facts.gpu import GpuInventory, GpuProcessFact, PodDeviceFact, XidFacts
from monitor.facts.storage import (
    DiskFact,
    DiskIoFact,
    ImageCacheFact,
    KubeletFact,
    MountFact,
    ProbeFact,
    RuntimeUsageFact,
)
from monitor.facts.workload import ContainerFact, ContainerUsageFact, HostFact, LogFact, ShmFact

SCHEMA = 1


class CollectorFact(Fact, frozen=True, kw_only=True):
    """How one collector fares.

    `outcome` is the last run's: "ok", "absent" (there is nothing to read here, e.g. no driver), "failed", or "starting"
    before the first run ended. `hung_since` is set while a run is over its time limit, and when it started.
    """

    name: str
    outcome: str
    interval_seconds: float
    runs: int = 0
    failures: int = 0
    duration_seconds: float | None = None
    succeeded_at: float | None = None
    hung_since: float | None = None
    message: str | None = None


class NodeSnapshot(Fact, frozen=True, kw_only=True):
    """One node. A part that is None is not known right now (never read, stale, or absent); () is known to be empty."""

    node: str
    at: float
    agent_version: str
    schema: int = SCHEMA
    boot_id: str | None = None
    collectors: tuple[CollectorFact, ...] = ()
    host: HostFact | None = None
    gpu: GpuInventory | None = None
    gpu_processes: tuple[GpuProcessFact, ...] | None = None
    xid: XidFacts | None = None
    pod_devices: tuple[PodDeviceFact, ...] | None = None
    containers: tuple[ContainerFact, ...] | None = None
    container_usage: tuple[ContainerUsageFact, ...] | None = None
    shm: tuple[ShmFact, ...] | None = None
    logs: tuple[LogFact, ...] | None = None
    disk: tuple[DiskFact, ...] | None = None
    disk_io: tuple[DiskIoFact, ...] | None = None
    mounts: tuple[MountFact, ...] | None = None
    images: tuple[ImageCacheFact, ...] | None = None
    runtime_usage: tuple[RuntimeUsageFact, ...] | None = None
    kubelet: KubeletFact | None = None
    probes: tuple[ProbeFact, ...] | None = None
    actions: ActionsFact | None = None
