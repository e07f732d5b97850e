"""The cluster as one consistent view: every card with exactly one state, every pod with an owner."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from monitor.facts.base import Fact
from monitor.facts.kube import Amounts
from monitor.facts.text import Evidence


class GpuState(StrEnum):
    """What a card is doing, decided from all that is known of it. The order is that of the decision."""

    UNKNOWN = "unknown"  # no fresh facts
    FAULTY = "faulty"  # lost, XID, ECC, a remap or a reset that is due
    WEDGED = "wedged"  # a holder in D or Z, or gone from /proc
    ZOMBIE = "zombie"  # a process whose pod is finished, deleted or overdue in terminating
    ORPHAN = "orphan"  # a process that belongs to no pod
    GHOST = "ghost"  # memory or utilisation without a process
    IDLE_HELD = "idle-held"  # a live pod has it and has not used it for a while
    BUSY = "busy"  # a live pod has it
    PHANTOM = "phantom"  # the kubelet has it down for a pod that does not exist
    FREE = "free"


class Identity(Fact, frozen=True, kw_only=True):
    """Whose a pod is. None where nothing says."""

    user: str | None = None
    job: str | None = None
    role: str | None = None
    index: str | None = None
    queue: str | None = None
    platform: str | None = None
    workload_kind: str | None = None


class Holder(Fact, frozen=True, kw_only=True):
    """A pod that has, or had, a card. `by` says who says so: pod-resources, checkpoint, process."""

    pod_uid: str | None = None
    pod: str | None = None
    namespace: str | None = None
    container: str | None = None
    by: tuple[str, ...] = ()
    live: bool | None = None  # None: Kubernetes cannot be asked
    user: str | None = None
    job: str | None = None
    queue: str | None = None


class GpuView(Fact, frozen=True, kw_only=True):
    """One card. `since` is when it was first seen in this state."""

    node: str
    state: GpuState
    index: int
    uuid: str | None = None
    model: str | None = None
    since: float | None = None
    idle_since: float | None = None
    holders: tuple[Holder, ...] = ()
    pids: tuple[int, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    disagreements: tuple[str, ...] = ()
    utilization_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None


class NodeView(Fact, frozen=True, kw_only=True):
    """One node. `free` is what the scheduler could still give away and no card's state forbids.

    `heard_at` is when its agent last answered; `silent_since` since when it does not.
    """

    name: str
    model: str | None = None
    ready: bool | None = None
    schedulable: bool = True
    in_kubernetes: bool = False
    has_agent: bool = False
    heard_at: float | None = None
    silent_since: float | None = None
    silent_why: str | None = None
    capacity: int | None = None
    allocatable: int | None = None
    requested: int = 0
    cards: int | None = None  # as the driver counts them
    free: int | None = None
    disagreements: tuple[str, ...] = ()


class UsageView(Fact, frozen=True, kw_only=True):
    """What a pod, or all pods of a user, use. None: not known."""

    gpus: float = 0
    gpu_memory_bytes: int | None = None
    gpu_utilization_ratio: float | None = None
    shm_bytes: int | None = None
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None


class PodView(Fact, frozen=True, kw_only=True):
    """A live or waiting pod with its owner and what it uses."""

    uid: str
    name: str
    namespace: str
    phase: str | None
    identity: Identity
    node: str | None = None
    created_at: float | None = None
    requested_gpus: float = 0
    usage: UsageView = UsageView()


class FreeView(Fact, frozen=True, kw_only=True):
    """Free cards of one model: in total, and the largest job that fits on one node."""

    model: str
    total: int
    free: int
    largest_on_one_node: int
    on: dict[str, int] = msgspec.field(default_factory=dict)  # node -> free


class QueueView(Fact, frozen=True, kw_only=True):
    """A queue or virtual cluster: what its pods have, what waits, and what it may still take where it says so."""

    name: str
    used: float
    waiting: float
    capacity: float | None = None
    free: float | None = None
    state: str | None = None


class SourceView(Fact, frozen=True, kw_only=True):
    """Whether a part of the world can be seen: kubernetes, or one kind of its objects, or the agents."""

    name: str
    ok: bool
    why: str | None = None
    since: float | None = None


class ClusterView(Fact, frozen=True, kw_only=True):
    """Everything, as of one moment. Equal inputs give an equal view, in whatever order they arrived."""

    at: float
    nodes: tuple[NodeView, ...] = ()
    gpus: tuple[GpuView, ...] = ()
    pods: tuple[PodView, ...] = ()
    free: tuple[FreeView, ...] = ()
    queues: tuple[QueueView, ...] = ()
    users: dict[str, UsageView] = msgspec.field(default_factory=dict)
    sources: tuple[SourceView, ...] = ()
    gpu_requests: Amounts = msgspec.field(default_factory=dict)
