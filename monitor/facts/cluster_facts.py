"""Indexed cluster facts: everything that explanations and rules read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuView, Identity, NodeView, SourceView
from monitor.facts.devices import NO_DEVICES, ClaimKey, DeviceFacts, ResourceClaimFact
from monitor.facts.gpu_nodes import GpuNodes
from monitor.facts.kube import Amounts, EventFact, NodeFact, PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.queues import PodGroupFact, QueueFact, QuotaFact, WorkloadFact
from monitor.facts.workload import ContainerFact

NO_IDENTITY = Identity()
GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
VOLCANO_JOB = "volcano.sh/job-name"
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"
# Labels that name what owns the owner of a pod, and its kind: Kueue queues that.
KUEUE_OWNERS = (
    ("jobset.sigs.k8s.io/jobset-name", "JobSet"),
    ("jobset.sigs.k8s.io/jobset-name", "TrainJob"),
    ("ray.io/originated-from-cr-name", "RayJob"),
    ("ray.io/cluster", "RayCluster"),
)
EventName = tuple[str, str | None, str]  # kind, namespace and name of the object


@dataclass
class ClusterFacts:
    """Facts of one moment, or live ones: `monitor.facts.facts_index` builds them and keeps the indexes consistent.

    Explanations have less detail without agents or the joined view.

    Attributes:
        pod_by_uid: all pods; `pending_by_uid` are those that are neither scheduled, finished nor deleted.
        bound: unfinished pods by node, whose requests count; `finished` are the others, also those that it refused.
        nominated: pending pods by the node nominated for them.
        used: total requests by node, as the scheduler counts them.
        gpu_nodes: nodes that offer GPUs; decides what one GPU of a request is.
        agent_of_node: agent by node; of several, the one heard last.
        snapshots: snapshots of the nodes whose agents answer; older data of silent agents proves nothing.
        gpus_by_pod: GPUs held by each pod, by pod uid.
        groups: PodGroups by namespace and each name that their pods may use to refer to them; `kueue` likewise.

    """

    resource: str = "nvidia.com/gpu"
    sources: tuple[SourceView, ...] = ()
    pod_by_uid: dict[str, PodFact] = field(default_factory=dict)
    pending_by_uid: dict[str, PodFact] = field(default_factory=dict)
    bound: dict[str, tuple[PodFact, ...]] = field(default_factory=dict)
    finished: dict[str, tuple[PodFact, ...]] = field(default_factory=dict)
    nominated: dict[str, tuple[PodFact, ...]] = field(default_factory=dict)
    used: dict[str, Amounts] = field(default_factory=dict)
    identities: dict[str, Identity] = field(default_factory=dict)
    node_by_name: dict[str, NodeFact] = field(default_factory=dict)
    agent_of_node: dict[str, AgentFact] = field(default_factory=dict)
    snapshots: dict[str, NodeSnapshot] = field(default_factory=dict)
    view_of_node: dict[str, NodeView] = field(default_factory=dict)
    gpu_nodes: GpuNodes = field(default_factory=GpuNodes)
    gpus_by_node: dict[str, tuple[GpuView, ...]] = field(default_factory=dict)
    gpus_by_pod: dict[str, tuple[GpuView, ...]] = field(default_factory=dict)
    events_by_uid: dict[str, tuple[EventFact, ...]] = field(default_factory=dict)
    events_by_name: dict[EventName, tuple[EventFact, ...]] = field(default_factory=dict)
    quotas: tuple[QuotaFact, ...] = ()
    queues: tuple[QueueFact, ...] = ()
    pod_groups: tuple[PodGroupFact, ...] = ()
    workloads: tuple[WorkloadFact, ...] = ()
    devices: DeviceFacts = NO_DEVICES
    claim_by_name: dict[ClaimKey, ResourceClaimFact] = field(default_factory=dict)
    groups: dict[tuple[str, str], PodGroupFact] = field(default_factory=dict)
    kueue: dict[tuple[str, str], WorkloadFact] = field(default_factory=dict)
    group_members: dict[str, tuple[PodFact, ...]] | None = None  # by group; None: not determined yet

    @property
    def pods(self) -> Collection[PodFact]:
        return self.pod_by_uid.values()

    @property
    def nodes(self) -> Collection[NodeFact]:
        """Nodes, sorted by name."""
        return self.node_by_name.values()

    @property
    def pending_pods(self) -> Collection[PodFact]:
        """Pods without a node that have neither finished nor been deleted."""
        return self.pending_by_uid.values()

    @property
    def agents(self) -> Collection[AgentFact]:
        return self.agent_of_node.values()

    def group_of(self, pod: PodFact) -> PodGroupFact | None:
        """Volcano PodGroup of the pod: by name, else by common owner."""
        if not self.groups:
            return None
        named = (*(pod.annotations.get(key) for key in GROUP_ANNOTATIONS), pod.labels.get(VOLCANO_JOB))
        references = (*named, pod.owner.uid if pod.owner else None, pod.uid)
        groups = self.groups
        return next(
            (groups[pod.namespace, name] for name in references if name and (pod.namespace, name) in groups), None
        )

    def members(self, group: PodGroupFact) -> tuple[PodFact, ...]:
        """Pods of the PodGroup."""
        if self.group_members is None:
            by_group: defaultdict[str, list[PodFact]] = defaultdict(list)
            for pod in self.pods:
                if known := self.group_of(pod):
                    by_group[known.uid].append(pod)
            self.group_members = {uid: tuple(pods) for uid, pods in by_group.items()}
        return self.group_members.get(group.uid, ())

    def workload_of(self, pod: PodFact) -> WorkloadFact | None:
        """Kueue Workload of the pod: by group, by owner, or by the owner's owner, which its labels name."""
        if not self.kueue:
            return None
        owners = (f"{kind}/{pod.labels[key]}" for key, kind in KUEUE_OWNERS if key in pod.labels)
        references = (pod.labels.get(KUEUE_GROUP), pod.owner.uid if pod.owner else None, pod.uid, *owners)
        workloads = self.kueue
        return next(
            (workloads[pod.namespace, name] for name in references if name and (pod.namespace, name) in workloads), None
        )

    def identity(self, pod: PodFact) -> Identity:
        return self.identities.get(pod.uid, NO_IDENTITY)

    def user(self, pod: PodFact) -> str:
        """User of the pod, else its namespace."""
        return self.identity(pod).user or pod.namespace

    def container_user(self, container: ContainerFact) -> str | None:
        """User of a container. Labels of its pod, which tenants write, count only where Kubernetes is unknown."""
        identity = self.identities.get(container.pod_uid or "")
        if identity is not None:
            return identity.user
        return container.user if container.pod_uid is None or not self.pod_by_uid else None

    def events_of(self, pod: PodFact) -> tuple[EventFact, ...]:
        """Events of the pod, oldest first. An earlier pod of the same name is a different pod."""
        return self.events_by_uid.get(pod.uid, ())

    def events_named(self, kind: str, namespace: str | None, name: str) -> tuple[EventFact, ...]:
        """Events of the object, oldest first."""
        return self.events_by_name.get((kind, namespace, name), ())

    def free(self, node: NodeFact, resource: str) -> float:
        """Amount of a resource that the scheduler can still assign on the node."""
        return node.allocatable.get(resource, 0.0) - self.used.get(node.name, {}).get(resource, 0.0)

    def free_gpus(self, node: NodeFact, resource: str) -> int:
        """Free GPUs of the node according to the cluster view, else by requests."""
        seen = self.view_of_node.get(node.name)
        counted = seen is not None and (seen.allocatable is not None or not seen.in_kubernetes)
        if counted and seen is not None and seen.free is not None and resource == self.resource:
            return seen.free
        return max(0, int(self.free(node, resource) + 1e-6))
