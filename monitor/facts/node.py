"""The snapshot: everything one agent knows about its node at one moment. This is the wire format."""

from __future__ import annotations

from typing import Annotated

from monitor.facts.actions import ActionsFact
from monitor.facts.base import Fact, Few, Figure, Many, Whole
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
    interval_seconds: Figure
    runs: Whole = 0
    failures: Whole = 0
    duration_seconds: Figure | None = None
    succeeded_at: Figure | None = None
    hung_since: Figure | None = None
    message: str | None = None


class NodeSnapshot(Fact, frozen=True, kw_only=True):
    """One node. A part that is None is not known right now (never read, stale, or absent); () is known to be empty."""

    node: str
    at: Figure
    agent_version: str
    schema: Whole = SCHEMA
    boot_id: str | None = None
    collectors: Annotated[tuple[CollectorFact, ...], Few] = ()
    host: HostFact | None = None
    gpu: GpuInventory | None = None
    gpu_processes: Annotated[tuple[GpuProcessFact, ...], Many] | None = None
    xid: XidFacts | None = None
    pod_devices: Annotated[tuple[PodDeviceFact, ...], Many] | None = None
    containers: Annotated[tuple[ContainerFact, ...], Many] | None = None
    container_usage: Annotated[tuple[ContainerUsageFact, ...], Many] | None = None
    shm: Annotated[tuple[ShmFact, ...], Many] | None = None
    logs: Annotated[tuple[LogFact, ...], Many] | None = None
    disk: Annotated[tuple[DiskFact, ...], Many] | None = None
    disk_io: Annotated[tuple[DiskIoFact, ...], Many] | None = None
    mounts: Annotated[tuple[MountFact, ...], Few] | None = None
    images: Annotated[tuple[ImageCacheFact, ...], Few] | None = None
    runtime_usage: Annotated[tuple[RuntimeUsageFact, ...], Few] | None = None
    kubelet: KubeletFact | None = None
    probes: Annotated[tuple[ProbeFact, ...], Few] | None = None
    actions: ActionsFact | None = None
