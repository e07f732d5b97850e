"""The cluster as one consistent view: every GPU has exactly one state, every pod an owner."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property

import msgspec

from monitor.facts.base import Fact
from monitor.facts.gpu_resources import SHARED_GPU, WHOLE_OR_SHARED
from monitor.facts.kube import Amounts
from monitor.facts.text import Evidence, Text


class GpuState(StrEnum):
    """State of a GPU, derived from all facts about it. Members are in decision order."""

    UNKNOWN = "unknown"  # no fresh facts
    FAULTY = "faulty"  # lost, XID, ECC, pending row remap or reset
    WEDGED = "wedged"  # a holding process in state D or Z, or gone from /proc
    ZOMBIE = "zombie"  # held by a process whose pod is finished, deleted or overdue in terminating
    ORPHAN = "orphan"  # held by a process that belongs to no pod
    GHOST = "ghost"  # memory or utilization without a process
    IDLE_HELD = "idle-held"  # held by a live pod that has not used it for a while
    BUSY = "busy"  # held by a live pod
    PHANTOM = "phantom"  # allocated by the kubelet to a pod that does not exist
    FREE = "free"


class Identity(Fact, frozen=True, kw_only=True):
    """Owner of a pod. None where unknown. `inference`: the pod serves requests and may wait for them."""

    user: str | None = None
    job: str | None = None
    role: str | None = None
    index: str | None = None
    queue: str | None = None
    platform: str | None = None
    workload_kind: str | None = None
    inference: bool = False


class Holder(Fact, frozen=True, kw_only=True):
    """A pod that holds, or held, a GPU or a share of it. `by` lists the sources.

    They are pod-resources, checkpoint, resource-claim, process and annotation. `slots` is the number of shares that it
    holds of a GPU that is split into some; `share_memory_bytes` and `share_cores_ratio` are what it may use of it.
    None: not limited, or not known. `device_ratio` is the part of the GPU that this amounts to; None: not known.
    """

    pod_uid: str | None = None
    pod: str | None = None
    namespace: str | None = None
    container: str | None = None
    by: tuple[str, ...] = ()
    live: bool | None = None  # None: Kubernetes is not visible
    user: str | None = None
    job: str | None = None
    queue: str | None = None
    slots: int | None = None
    share_memory_bytes: int | None = None
    share_cores_ratio: float | None = None
    device_ratio: float | None = 1.0


class ShareView(Fact, frozen=True, kw_only=True):
    """Shares of GPUs or other accelerators that a node offers, in the unit of `monitor.facts.gpu_resources.Unit`."""

    resource: str
    unit: str
    total: float
    used: float

    @property
    def free(self) -> float:
        return max(0.0, self.total - self.used)


class GpuView(Fact, frozen=True, kw_only=True):
    """One GPU. `since` is when it was first seen in this state."""

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
    temperature_celsius: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None


class NodeView(Fact, frozen=True, kw_only=True):
    """One node. `free` counts GPUs that the scheduler can still assign and whose state permits it.

    It is None while the node is down or its GPUs cannot be seen.

    `capacity`, `allocatable` and `requested` count whole GPUs as Kubernetes does; the first two are None if it offers
    only shares of them, which are in `shares`, as are accelerators of other vendors.

    `heard_at` is the agent's last answer; `silent_since` since when it has not answered.
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
    cards: int | None = None  # GPUs according to the driver
    free: int | None = None
    shares: tuple[ShareView, ...] = ()
    disagreements: tuple[str, ...] = ()


class UsageView(Fact, frozen=True, kw_only=True):
    """Resource usage of a pod, or of all pods of a user. None: unknown. `gpu_shares` is by resource."""

    gpus: float = 0
    gpu_shares: Amounts = msgspec.field(default_factory=dict)
    gpu_memory_bytes: int | None = None
    gpu_utilization_ratio: float | None = None
    shm_bytes: int | None = None
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None


class PodView(Fact, frozen=True, kw_only=True):
    """A live or pending pod with its owner and usage.

    `requested_gpus` counts whole GPUs; shares of GPUs and other accelerators are in `gpu_shares`, by resource.
    """

    uid: str
    name: str
    namespace: str
    phase: str | None
    identity: Identity
    node: str | None = None
    created_at: float | None = None
    requested_gpus: float = 0
    gpu_shares: Amounts = msgspec.field(default_factory=dict)
    usage: UsageView = UsageView()

    @property
    def waiting(self) -> bool:
        """Whether the pod is not scheduled yet."""
        return self.node is None and self.phase == "Pending"


class FreeView(Fact, frozen=True, kw_only=True):
    """Free GPUs of one model: in total, and the most on one node."""

    model: str
    total: int
    free: int
    largest_on_one_node: int
    on: dict[str, int] = msgspec.field(default_factory=dict)  # node -> free


class QueueView(Fact, frozen=True, kw_only=True):
    """A queue or virtual cluster: GPUs used, GPUs waiting, and remaining capacity where limited.

    Shares of GPUs and other accelerators are in `..._shares`, by resource.
    """

    name: str
    used: float
    waiting: float
    capacity: float | None = None
    free: float | None = None
    state: str | None = None
    used_shares: Amounts = msgspec.field(default_factory=dict)
    waiting_shares: Amounts = msgspec.field(default_factory=dict)
    capacity_shares: Amounts = msgspec.field(default_factory=dict)

    @property
    def limited(self) -> bool:
        return self.free is not None or bool(self.capacity_shares)

    @property
    def free_shares(self) -> Amounts:
        """What is left of the shares that are limited."""
        used = dict(self.used_shares)
        used[WHOLE_OR_SHARED] = self.used + used.get(SHARED_GPU, 0.0)
        return {name: max(0.0, limit - used.get(name, 0.0)) for name, limit in self.capacity_shares.items()}


class SourceView(Fact, frozen=True, kw_only=True):
    """Visibility of a data source: kubernetes, one of its resources, or the agents.

    `why` is for programs and logs, in English; `text` is the same where it is a sentence of ours.
    """

    name: str
    ok: bool
    why: str | None = None
    since: float | None = None
    text: Text | None = None


class ClusterView(Fact, frozen=True, kw_only=True, dict=True, gc=True):
    """The whole cluster at one moment. Equal inputs give an equal view, in whatever order they arrive."""

    at: float
    nodes: tuple[NodeView, ...] = ()
    gpus: tuple[GpuView, ...] = ()
    pods: tuple[PodView, ...] = ()
    free: tuple[FreeView, ...] = ()
    queues: tuple[QueueView, ...] = ()
    users: dict[str, UsageView] = msgspec.field(default_factory=dict)
    sources: tuple[SourceView, ...] = ()
    gpu_requests: Amounts = msgspec.field(default_factory=dict)

    @cached_property
    def gpus_by_node(self) -> Mapping[str, tuple[GpuView, ...]]:
        """GPUs of each node that has any."""
        gpus: defaultdict[str, list[GpuView]] = defaultdict(list)
        for gpu in self.gpus:
            gpus[gpu.node].append(gpu)
        return {node: tuple(group) for node, group in gpus.items()}

    def with_known_nodes(self, gpus: Mapping[str, tuple[GpuView, ...]]) -> ClusterView:
        """The view, given its GPUs by node: those of an unchanged node stay the same tuple."""
        vars(self)["gpus_by_node"] = gpus
        return self
