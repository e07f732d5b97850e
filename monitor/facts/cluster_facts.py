"""Indexed cluster facts: everything that explanations and rules read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuView, Identity, NodeView
from monitor.facts.kube import Amounts, EventFact, NodeFact, PodFact, PodGroupFact, QueueFact, QuotaFact, WorkloadFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.workload import ContainerFact

NO_IDENTITY = Identity()
GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
VOLCANO_JOB = "volcano.sh/job-name"
KUEUE_GROUP = "kueue.x-k8s.io/pod-group-name"


@dataclass(frozen=True)
class ClusterFacts:
    """Facts of one moment, built by `make_cluster_facts`. Explanations have less detail without `view` or `agents`."""

    pods: tuple[PodFact, ...] = ()
    nodes: tuple[NodeFact, ...] = ()
    events_by_uid: Mapping[str, tuple[EventFact, ...]] = field(default_factory=dict)
    events_by_name: Mapping[tuple[str, str | None, str], tuple[EventFact, ...]] = field(default_factory=dict)
    quotas: tuple[QuotaFact, ...] = ()
    queues: tuple[QueueFact, ...] = ()
    pod_groups: tuple[PodGroupFact, ...] = ()
    workloads: tuple[WorkloadFact, ...] = ()
    identities: Mapping[str, Identity] = field(default_factory=dict)
    agents: tuple[AgentFact, ...] = ()
    view: ClusterView | None = None
    resource: str = "nvidia.com/gpu"

    @cached_property
    def node_by_name(self) -> dict[str, NodeFact]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def view_of_node(self) -> dict[str, NodeView]:
        return {node.name: node for node in self.view.nodes} if self.view else {}

    @cached_property
    def pod_by_uid(self) -> dict[str, PodFact]:
        return {pod.uid: pod for pod in self.pods}

    @cached_property
    def gpus_by_node(self) -> dict[str, tuple[GpuView, ...]]:
        by_node: defaultdict[str, list[GpuView]] = defaultdict(list)
        for gpu in self.view.gpus if self.view else ():
            by_node[gpu.node].append(gpu)
        return {node: tuple(gpus) for node, gpus in by_node.items()}

    @cached_property
    def agent_of_node(self) -> dict[str, AgentFact]:
        """Agent by node; of several, the one with the newest snapshot."""
        ordered = sorted(self.agents, key=lambda agent: (agent.received_at or 0.0, agent.target))
        return {agent.node or agent.target: agent for agent in ordered}

    @cached_property
    def bound(self) -> dict[str, tuple[PodFact, ...]]:
        """Unfinished pods by node: those whose requests count."""
        by_node: defaultdict[str, list[PodFact]] = defaultdict(list)
        for pod in self.pods:
            if pod.node is not None and not pod.finished:
                by_node[pod.node].append(pod)
        return {node: tuple(pods) for node, pods in by_node.items()}

    @cached_property
    def finished(self) -> dict[str, tuple[PodFact, ...]]:
        """Finished pods by node, including those that the node refused."""
        by_node: defaultdict[str, list[PodFact]] = defaultdict(list)
        for pod in self.pods:
            if pod.node is not None and pod.finished:
                by_node[pod.node].append(pod)
        return {node: tuple(pods) for node, pods in by_node.items()}

    @cached_property
    def nominated(self) -> dict[str, tuple[PodFact, ...]]:
        """Pending pods by the node nominated for them."""
        by_node: defaultdict[str, list[PodFact]] = defaultdict(list)
        for pod in self.pods:
            if pod.node is None and pod.nominated_node is not None and not pod.finished:
                by_node[pod.nominated_node].append(pod)
        return {node: tuple(pods) for node, pods in by_node.items()}

    @cached_property
    def used(self) -> dict[str, Amounts]:
        """Total requests by node, as the scheduler counts them."""
        by_node: dict[str, Amounts] = {}
        for node, pods in self.bound.items():
            total: Amounts = {"pods": float(len(pods))}
            for pod in pods:
                for name, amount in pod.requests.items():
                    total[name] = total.get(name, 0.0) + amount
            by_node[node] = total
        return by_node

    @cached_property
    def gpus_by_pod(self) -> dict[str, tuple[GpuView, ...]]:
        """GPUs held by each pod, by pod uid."""
        by_pod: defaultdict[str, list[GpuView]] = defaultdict(list)
        for gpu in self.view.gpus if self.view else ():
            for holder in gpu.holders:
                if holder.pod_uid is not None:
                    by_pod[holder.pod_uid].append(gpu)
        return {uid: tuple(gpus) for uid, gpus in by_pod.items()}

    @cached_property
    def snapshots(self) -> dict[str, NodeSnapshot]:
        """Snapshots of the nodes whose agents answer. Older data of silent agents proves nothing."""
        return {
            agent.node or agent.snapshot.node: agent.snapshot
            for agent in self.agents
            if agent.snapshot is not None and agent.silent_since is None
        }

    @cached_property
    def _groups(self) -> dict[tuple[str, str], PodGroupFact]:
        """PodGroups by namespace and each name that their pods may use to refer to them."""
        groups: dict[tuple[str, str], PodGroupFact] = {}
        for group in self.pod_groups:
            owner = group.owner
            for reference in (owner.name if owner else None, owner.uid if owner else None, group.name):
                if reference:
                    groups[group.namespace, reference] = group
        return groups

    @cached_property
    def _members(self) -> dict[str, tuple[PodFact, ...]]:
        by_group: defaultdict[str, list[PodFact]] = defaultdict(list)
        for pod in self.pods if self.pod_groups else ():
            if group := self.group_of(pod):
                by_group[group.uid].append(pod)
        return {uid: tuple(pods) for uid, pods in by_group.items()}

    @cached_property
    def _workloads(self) -> dict[tuple[str, str], WorkloadFact]:
        workloads: dict[tuple[str, str], WorkloadFact] = {}
        for workload in self.workloads:
            workloads[workload.namespace, workload.name] = workload
            if workload.owner and workload.owner.uid:
                workloads[workload.namespace, workload.owner.uid] = workload
        return workloads

    def group_of(self, pod: PodFact) -> PodGroupFact | None:
        """Volcano PodGroup of the pod: by name, else by common owner."""
        named = (*(pod.annotations.get(key) for key in GROUP_ANNOTATIONS), pod.labels.get(VOLCANO_JOB))
        references = (*named, pod.owner.uid if pod.owner else None, pod.uid)
        groups = self._groups
        return next(
            (groups[pod.namespace, name] for name in references if name and (pod.namespace, name) in groups), None
        )

    def members(self, group: PodGroupFact) -> tuple[PodFact, ...]:
        """Pods of the PodGroup."""
        return self._members.get(group.uid, ())

    def workload_of(self, pod: PodFact) -> WorkloadFact | None:
        """Kueue Workload of the pod: by group, else by owner."""
        references = (pod.labels.get(KUEUE_GROUP), pod.owner.uid if pod.owner else None, pod.uid)
        workloads = self._workloads
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
        return container.user if container.pod_uid is None or not self.pods else None

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
        if seen is not None and seen.free is not None and resource == self.resource:
            return seen.free
        return max(0, int(self.free(node, resource) + 1e-6))


def make_cluster_facts(
    *,
    pods: Iterable[PodFact] = (),
    nodes: Iterable[NodeFact] = (),
    events: Iterable[EventFact] = (),
    quotas: Iterable[QuotaFact] = (),
    queues: Iterable[QueueFact] = (),
    pod_groups: Iterable[PodGroupFact] = (),
    workloads: Iterable[WorkloadFact] = (),
    identities: Mapping[str, Identity] | None = None,
    agents: Iterable[AgentFact] = (),
    view: ClusterView | None = None,
    resource: str = "nvidia.com/gpu",
) -> ClusterFacts:
    """Index the facts of one moment, given in any order."""
    by_uid: defaultdict[str, list[EventFact]] = defaultdict(list)
    by_name: defaultdict[tuple[str, str | None, str], list[EventFact]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event.last_at or 0.0, event.uid)):
        by_name[event.kind, event.namespace, event.name].append(event)
        if event.involved_uid is not None:
            by_uid[event.involved_uid].append(event)
    return ClusterFacts(
        pods=tuple(pods),
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        events_by_uid={uid: tuple(items) for uid, items in by_uid.items()},
        events_by_name={name: tuple(items) for name, items in by_name.items()},
        quotas=tuple(quotas),
        queues=tuple(queues),
        pod_groups=tuple(pod_groups),
        workloads=tuple(workloads),
        identities=identities or {},
        agents=tuple(agents),
        view=view,
        resource=resource,
    )
