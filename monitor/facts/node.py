"""The snapshot: all facts of one agent about its node at one moment. This is the wire format."""

from __future__ import annotations

from typing import Annotated, Any

from monitor.facts.actions import ActionsFact
from monitor.facts.base import LONG_LIST, SHORT_LIST, BoundedFloat, BoundedInt, BoundedText, Fact, Identifier
from monitor.facts.gpu import GpuInventory, GpuProcessFact, PodDeviceFact, XidFacts
from monitor.facts.kernel import KernelFacts
from monitor.facts.log_tails import LogTailFact
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

SCHEMA_VERSION = 1


class CollectorFact(Fact, frozen=True, kw_only=True):
    """Health of one collector.

    `outcome` is that of the last run: "ok", "absent" (nothing to read, e.g. no driver), "failed", or "starting" before
    the end of the first run. `hung_since` is the start of a run that exceeds its time limit.
    """

    name: Identifier
    outcome: Identifier
    interval_seconds: BoundedFloat
    runs: BoundedInt = 0
    failures: BoundedInt = 0
    duration_seconds: BoundedFloat | None = None
    succeeded_at: BoundedFloat | None = None
    hung_since: BoundedFloat | None = None
    message: BoundedText | None = None


class NodeSnapshot(Fact, frozen=True, kw_only=True):
    """One node. None means currently unknown (never read, stale, or absent); () means known to be empty."""

    node: Identifier
    at: BoundedFloat
    agent_version: Identifier
    schema: BoundedInt = SCHEMA_VERSION
    boot_id: Identifier | None = None
    collectors: Annotated[tuple[CollectorFact, ...], SHORT_LIST] = ()
    host: HostFact | None = None
    gpu: GpuInventory | None = None
    gpu_processes: Annotated[tuple[GpuProcessFact, ...], LONG_LIST] | None = None
    xid: XidFacts | None = None
    kernel: KernelFacts | None = None
    pod_devices: Annotated[tuple[PodDeviceFact, ...], LONG_LIST] | None = None
    containers: Annotated[tuple[ContainerFact, ...], LONG_LIST] | None = None
    container_usage: Annotated[tuple[ContainerUsageFact, ...], LONG_LIST] | None = None
    shm: Annotated[tuple[ShmFact, ...], LONG_LIST] | None = None
    logs: Annotated[tuple[LogFact, ...], LONG_LIST] | None = None
    log_tails: Annotated[tuple[LogTailFact, ...], SHORT_LIST] | None = None
    disk: Annotated[tuple[DiskFact, ...], LONG_LIST] | None = None
    disk_io: Annotated[tuple[DiskIoFact, ...], LONG_LIST] | None = None
    mounts: Annotated[tuple[MountFact, ...], SHORT_LIST] | None = None
    images: Annotated[tuple[ImageCacheFact, ...], SHORT_LIST] | None = None
    runtime_usage: Annotated[tuple[RuntimeUsageFact, ...], SHORT_LIST] | None = None
    kubelet: KubeletFact | None = None
    probes: Annotated[tuple[ProbeFact, ...], SHORT_LIST] | None = None
    actions: ActionsFact | None = None


HEAD = ("node", "at", "agent_version", "schema")  # in every update; all other fields are parts
PARTS = tuple(name for name in NodeSnapshot.__struct_fields__ if name not in HEAD)


class SnapshotUpdate(NodeSnapshot, frozen=True, kw_only=True):
    """A snapshot for a client that keeps one: all of it, or what has changed since the version that the client has.

    `version` is what the client sends to receive the next update. Without `since` the snapshot is complete. With
    `since` only the parts named in `changed` replace those of the snapshot of that version. Collectors run all the
    time: unless `changed` names them, `collectors` holds those that differ, and the others are unchanged. An agent that
    knows no versions sends a complete snapshot without a version.
    """

    version: Identifier | None = None
    since: Identifier | None = None
    changed: Annotated[tuple[Identifier, ...], SHORT_LIST] = ()


def changed_parts(before: NodeSnapshot | None, after: NodeSnapshot) -> frozenset[str]:
    """Names of the parts of a node's snapshot that differ from those of one received earlier.

    Collectors have changed if what they report about themselves has. Their times and counts change with every run.
    """
    if before is None:
        return frozenset(PARTS)
    names = {name for name in PARTS if getattr(before, name) is not getattr(after, name)}
    if "collectors" in names and list(map(_status, before.collectors)) == list(map(_status, after.collectors)):
        names.discard("collectors")
    return frozenset(names)


def _status(fact: CollectorFact) -> tuple[Any, ...]:
    return fact.name, fact.outcome, fact.interval_seconds, fact.hung_since, fact.message
