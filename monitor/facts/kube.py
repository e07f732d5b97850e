"""Kubernetes objects as facts: the fields of pods, nodes, events and owners that are read.

Times are seconds since the epoch. Resource amounts are plain numbers: `500m` CPU is 0.5, `16Gi` is bytes.
"""

from __future__ import annotations

import msgspec

from monitor.facts.base import Fact

Amounts = dict[str, float]  # resource name -> amount, for example {"cpu": 0.5, "nvidia.com/gpu": 8.0}
TERMINAL_PHASES = ("Succeeded", "Failed")
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"  # the label of a pod or job


class ObjectFact(Fact, frozen=True, kw_only=True):
    """An API object. `uid` distinguishes it from a later object of the same name."""

    uid: str
    resource_version: str | None = None


class OwnerRef(Fact, frozen=True, kw_only=True):
    """The controller that owns an object."""

    kind: str
    name: str
    uid: str | None = None
    api_version: str | None = None


class ConditionFact(Fact, frozen=True, kw_only=True):
    """One entry of `status.conditions`. `status` None is Kubernetes' "Unknown"."""

    type: str
    status: bool | None = None
    reason: str | None = None
    message: str | None = None
    since: float | None = None


class TolerationFact(Fact, frozen=True, kw_only=True):
    """A toleration of a pod. No key matches every taint."""

    key: str | None = None
    operator: str = "Equal"
    value: str | None = None
    effect: str | None = None
    seconds: float | None = None


class NodeRequirementFact(Fact, frozen=True, kw_only=True):
    """One expression about a node's labels, or about its fields where `field` is set (`metadata.name`)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False


class PodContainerFact(Fact, frozen=True, kw_only=True):
    """A container as specified. A sidecar is an init container that keeps running beside the others.

    `serves`: it has a port, and is ready once it responds over HTTP or gRPC.
    """

    name: str
    image: str | None = None
    init: bool = False
    sidecar: bool = False
    serves: bool = False
    requests: Amounts = msgspec.field(default_factory=dict)
    limits: Amounts = msgspec.field(default_factory=dict)


class TerminationFact(Fact, frozen=True, kw_only=True):
    """How a container terminated."""

    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    started_at: float | None = None
    finished_at: float | None = None
    container_id: str | None = None


class ContainerStatusFact(Fact, frozen=True, kw_only=True):
    """Status of a container. `state` is waiting, running, terminated, or None before the kubelet reports it.

    `container_id` has no `docker://` or `containerd://` prefix, so that it equals the id that agents report.
    `last` is the termination of the previous run. `started`: it runs and has passed its startup probe, if any.
    """

    name: str
    init: bool = False
    sidecar: bool = False
    started: bool = False
    state: str | None = None
    reason: str | None = None
    message: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    started_at: float | None = None
    finished_at: float | None = None
    restart_count: int = 0
    ready: bool = False
    image_id: str | None = None
    container_id: str | None = None
    last: TerminationFact | None = None


class PodVolumeFact(Fact, frozen=True, kw_only=True):
    """A volume of a pod. `kind` is the API's field name (`nfs`, `hostPath`, …), or "other".

    `names` are the referenced config maps and secrets; pods enlarge /dev/shm with `medium` "Memory".
    """

    name: str
    kind: str
    claim: str | None = None
    server: str | None = None
    path: str | None = None
    image: str | None = None
    names: tuple[str, ...] = ()
    medium: str | None = None
    size_limit_bytes: float | None = None


class PodClaimFact(Fact, frozen=True, kw_only=True):
    """A ResourceClaim of a pod. `claim` is None until the one that `template` describes has been created."""

    name: str
    claim: str | None = None
    template: str | None = None


class PodFact(ObjectFact, frozen=True, kw_only=True):
    """A pod. Only annotations and variables that identify its owner are kept: the others may contain secrets.

    `requests` is what counts on its node: containers and sidecars together, or the largest init container, plus
    overhead; while a resize is pending, what the kubelet has allocated. `node_affinity` is the required affinity: any
    of the terms, each with all of its requirements. `pod_affinity`: required affinity or anti-affinity to other
    pods exists. `claimed_gpus`, known once claims are joined, is part of `requests`.
    """

    name: str
    namespace: str
    node: str | None = None
    nominated_node: str | None = None
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    created_at: float | None = None
    started_at: float | None = None
    deletion_at: float | None = None
    deletion_grace_seconds: float | None = None
    finalizers: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    env: dict[str, str] = msgspec.field(default_factory=dict)
    owner: OwnerRef | None = None
    priority: int | None = None
    priority_class: str | None = None
    scheduler: str | None = None
    scheduling_gates: tuple[str, ...] = ()
    qos: str | None = None
    pod_ip: str | None = None
    host_network: bool = False
    requests: Amounts = msgspec.field(default_factory=dict)
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    node_affinity: tuple[tuple[NodeRequirementFact, ...], ...] = ()
    pod_affinity: bool = False
    tolerations: tuple[TolerationFact, ...] = ()
    containers: tuple[PodContainerFact, ...] = ()
    statuses: tuple[ContainerStatusFact, ...] = ()
    conditions: tuple[ConditionFact, ...] = ()
    volumes: tuple[PodVolumeFact, ...] = ()
    device_claims: tuple[PodClaimFact, ...] = ()
    claimed_gpus: float = 0.0

    @property
    def finished(self) -> bool:
        return self.phase in TERMINAL_PHASES


class TaintFact(Fact, frozen=True, kw_only=True):
    """A taint of a node."""

    key: str
    effect: str
    value: str | None = None
    since: float | None = None


class NodeFact(ObjectFact, frozen=True, kw_only=True):
    """A node. `ready` None: the kubelet is silent or has never reported. Few annotations are kept.

    `claimable_gpus`, known once ResourceSlices are joined, are part of `capacity` and `allocatable`; `plugin_gpus` are
    those that are allocatable without a claim, None before the join.
    """

    name: str
    created_at: float | None = None
    deletion_at: float | None = None
    ready: bool | None = None
    ready_since: float | None = None
    ready_reason: str | None = None
    conditions: tuple[ConditionFact, ...] = ()
    unschedulable: bool = False
    taints: tuple[TaintFact, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    capacity: Amounts = msgspec.field(default_factory=dict)
    allocatable: Amounts = msgspec.field(default_factory=dict)
    claimable_gpus: int = 0
    plugin_gpus: float | None = None
    internal_ip: str | None = None
    kubelet_version: str | None = None
    runtime_version: str | None = None


class EventFact(ObjectFact, frozen=True, kw_only=True):
    """An event of an object, seen `count` times between `first_at` and `last_at`."""

    kind: str
    name: str
    namespace: str | None = None
    involved_uid: str | None = None
    container: str | None = None
    reason: str | None = None
    type: str | None = None
    message: str | None = None
    count: int = 1
    first_at: float | None = None
    last_at: float | None = None
    component: str | None = None
    host: str | None = None


class OwnerFact(ObjectFact, frozen=True, kw_only=True):
    """A ReplicaSet or Job, reduced to its own owner and the queue of Kueue that its label names."""

    name: str
    namespace: str
    owner: OwnerRef | None = None
    queue: str | None = None


class JobFact(OwnerFact, frozen=True, kw_only=True):
    """A Job, with how it ended: `completed`, or the reason of its failure (`failed_by`). Neither: it goes on."""

    completed: bool = False
    failed_by: str | None = None

    @property
    def ended(self) -> bool:
        return self.completed or self.failed_by is not None


class NamespaceFact(ObjectFact, frozen=True, kw_only=True):
    """A namespace, and its user according to the `owner` annotation (Kubeflow profiles)."""

    name: str
    owner: str | None = None


class SourceFact(Fact, frozen=True, kw_only=True):
    """Watch status of one resource.

    `state` is starting, synced, stale (was synced, the API server does not answer now), forbidden, absent (the API
    server does not serve this resource) or failing (never synced). `lag_seconds` is the time since the API server last
    sent anything, including bookmarks. `without` names what is missing while the resource is not synced.
    """

    resource: str
    state: str
    objects: int = 0
    version: int = 0
    synced_since: float | None = None
    stale_since: float | None = None
    contact_at: float | None = None
    last_event_at: float | None = None
    lag_seconds: float | None = None
    last_error: str | None = None
    without: str | None = None
    lists: int = 0
    watches: int = 0
    events: int = 0
    failures: int = 0
    skipped: int = 0  # objects that could not be decoded
