"""Builds cluster facts and keeps their indexes consistent: a change costs what it affects."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuView, Identity, NodeView, SourceView
from monitor.facts.cluster_facts import NO_IDENTITY, ClusterFacts, EventName
from monitor.facts.devices import NO_DEVICES, DeviceFacts
from monitor.facts.gpu_nodes import GpuNodes
from monitor.facts.kube import Amounts, EventFact, NodeFact, PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.queues import PodGroupFact, QueueFact, QuotaFact, WorkloadFact

K = TypeVar("K")
V = TypeVar("V")
_Pods = defaultdict[str, dict[str, PodFact]]  # node -> pods by uid
_HeldGpus = dict[str, dict[str, list[GpuView]]]  # pod -> GPUs that it holds, by node


@dataclass(frozen=True)
class KnownNode:
    """Everything known about a node; None where a source does not know it."""

    fact: NodeFact | None = None
    agent: AgentFact | None = None
    view: NodeView | None = None
    gpus: tuple[GpuView, ...] = ()


@dataclass(frozen=True)
class KnownPod:
    """A pod with its owner."""

    fact: PodFact
    identity: Identity = NO_IDENTITY


@dataclass(frozen=True)
class SmallFacts:
    """Kinds of facts with few objects, replaced as a whole."""

    sources: tuple[SourceView, ...] = ()
    queues: tuple[QueueFact, ...] = ()
    quotas: tuple[QuotaFact, ...] = ()
    pod_groups: tuple[PodGroupFact, ...] = ()
    workloads: tuple[WorkloadFact, ...] = ()
    devices: DeviceFacts = NO_DEVICES


class FactsIndex:
    """Facts that change in place. Only the thread that changes them may read them."""

    def __init__(self, resource: str = "nvidia.com/gpu") -> None:
        self.facts = ClusterFacts(resource=resource, gpu_nodes=GpuNodes(resource))
        self._pods_on: _Pods = defaultdict(dict)
        self._nominated_to: _Pods = defaultdict(dict)
        self._events: dict[str, EventFact] = {}

    def put_pods(self, pods: Mapping[str, KnownPod | None]) -> None:
        """Replace pods by uid; None: gone."""
        if not self.facts.pod_by_uid:
            self._put_all_pods({uid: pod for uid, pod in pods.items() if pod is not None})
            return
        affected: set[str] = set()
        for uid, pod in pods.items():
            before, after = self.facts.pod_by_uid.get(uid), pod.fact if pod is not None else None
            self._put_pod(uid, pod)
            affected |= _move(uid, self._pods_on, before, after, _node)
            affected |= _move(uid, self._nominated_to, before, after, _nominated_node)
        for node in affected:
            self._index_node(node)
        if pods:
            self.facts.group_members = None

    def _put_all_pods(self, pods: Mapping[str, KnownPod]) -> None:
        """The same for the first pods: an explanation begins with all of the cluster."""
        facts = self.facts
        facts.pod_by_uid |= {uid: pod.fact for uid, pod in pods.items()}
        facts.identities |= {uid: pod.identity for uid, pod in pods.items()}
        for uid, fact in facts.pod_by_uid.items():
            if fact.node is not None:
                self._pods_on[fact.node][uid] = fact
                continue
            if _is_pending(fact):
                facts.pending_by_uid[uid] = fact
            nominated = _nominated_node(fact)
            if nominated is not None:
                self._nominated_to[nominated][uid] = fact
        for node in self._pods_on.keys() | self._nominated_to.keys():
            self._index_node(node)
        if pods:
            facts.group_members = None

    def nodes_of(self, pods: Iterable[str]) -> set[str]:
        """Nodes of pods, by uid."""
        known = (self.facts.pod_by_uid.get(uid) for uid in pods)
        return {pod.node for pod in known if pod is not None and pod.node is not None}

    def _put_pod(self, uid: str, pod: KnownPod | None) -> None:
        facts = self.facts
        _set(facts.pod_by_uid, uid, pod.fact if pod is not None else None)
        _set(facts.identities, uid, pod.identity if pod is not None else None)
        _set(facts.pending_by_uid, uid, pod.fact if pod is not None and _is_pending(pod.fact) else None)

    def _index_node(self, node: str) -> None:
        """Update what depends on the pods of a node."""
        facts, pods = self.facts, tuple(self._pods_on[node].values())
        finished = tuple([pod for pod in pods if pod.finished])
        bound = tuple([pod for pod in pods if not pod.finished]) if finished else pods
        _set(facts.finished, node, finished or None)
        _set(facts.bound, node, bound or None)
        _set(facts.used, node, _total_requests(bound) if bound else None)
        _set(facts.nominated, node, tuple(self._nominated_to[node].values()) or None)

    def put_nodes(self, nodes: Mapping[str, KnownNode | None]) -> None:
        """Replace nodes by name; None: gone."""
        facts, new = self.facts, False
        held: _HeldGpus = {}
        for name, known in nodes.items():
            node = known or KnownNode()
            new = new or (node.fact is not None and name not in facts.node_by_name)
            gpus = facts.gpus_by_node.get(name, ())
            if gpus is not node.gpus:
                _note_held(held, name, gpus, node.gpus)
            _set(facts.node_by_name, name, node.fact)
            _set(facts.agent_of_node, name, node.agent)
            _set(facts.snapshots, name, _current(node.agent))
            _set(facts.view_of_node, name, node.view)
            facts.gpu_nodes.put(name, node.fact, node.view)
            _set(facts.gpus_by_node, name, node.gpus or None)
        for uid, by_node in held.items():
            elsewhere = [gpu for gpu in facts.gpus_by_pod.get(uid, ()) if gpu.node not in by_node]
            here = (gpu for _, gpus in sorted(by_node.items()) for gpu in gpus)
            _set(facts.gpus_by_pod, uid, (*elsewhere, *here) or None)
        if new:
            facts.node_by_name = dict(sorted(facts.node_by_name.items()))

    def put_events(self, events: Mapping[str, EventFact | None]) -> set[str]:
        """Replace events by uid (None: gone), and return the uids of the objects that they are about."""
        if not self._events:
            return self._put_all_events({uid: event for uid, event in events.items() if event is not None})
        about: set[str] = set()
        for uid, event in events.items():
            for version, add in ((self._events.get(uid), False), (event, True)):
                if version is not None:
                    self._index_event(version, add=add)
                    about |= {version.involved_uid} if version.involved_uid is not None else set()
            _set(self._events, uid, event)
        return about

    def _put_all_events(self, events: dict[str, EventFact]) -> set[str]:
        """The same for the first events, since an object may have thousands."""
        by_uid: defaultdict[str, list[EventFact]] = defaultdict(list)
        by_name: defaultdict[EventName, list[EventFact]] = defaultdict(list)
        for event in sorted(events.values(), key=_event_order):
            by_name[event.kind, event.namespace, event.name].append(event)
            if event.involved_uid is not None:
                by_uid[event.involved_uid].append(event)
        self.facts.events_by_uid |= {uid: tuple(items) for uid, items in by_uid.items()}
        self.facts.events_by_name |= {name: tuple(items) for name, items in by_name.items()}
        self._events = events
        return set(by_uid)

    def _index_event(self, event: EventFact, *, add: bool) -> None:
        facts, name = self.facts, (event.kind, event.namespace, event.name)
        _set(facts.events_by_name, name, _with_event(facts.events_by_name.get(name, ()), event, add=add) or None)
        if event.involved_uid is not None:
            about = facts.events_by_uid.get(event.involved_uid, ())
            _set(facts.events_by_uid, event.involved_uid, _with_event(about, event, add=add) or None)

    def put_small(self, small: SmallFacts) -> set[str]:
        """Replace the kinds with few objects, and return those that have changed."""
        facts = self.facts
        kinds = {name for name in SmallFacts.__annotations__ if getattr(facts, name) != getattr(small, name)}
        for name in kinds:
            setattr(facts, name, getattr(small, name))
        if "pod_groups" in kinds:
            facts.groups, facts.group_members = _groups(small.pod_groups), None
        if "workloads" in kinds:
            facts.kueue = _workloads(small.workloads)
        if "devices" in kinds:
            facts.claim_by_name = {claim.key: claim for claim in small.devices.claims}
        return kinds


def make_cluster_facts(
    *,
    pods: Iterable[PodFact] = (),
    nodes: Iterable[NodeFact] = (),
    events: Iterable[EventFact] = (),
    quotas: Iterable[QuotaFact] = (),
    queues: Iterable[QueueFact] = (),
    pod_groups: Iterable[PodGroupFact] = (),
    workloads: Iterable[WorkloadFact] = (),
    devices: DeviceFacts | None = None,
    identities: Mapping[str, Identity] | None = None,
    agents: Iterable[AgentFact] = (),
    view: ClusterView | None = None,
    resource: str = "nvidia.com/gpu",
) -> ClusterFacts:
    """Index the facts of one moment, given in any order."""
    index, identities = FactsIndex(resource), identities or {}
    index.put_pods({pod.uid: KnownPod(pod, identities.get(pod.uid, NO_IDENTITY)) for pod in pods})
    index.facts.identities |= identities
    index.put_nodes(node_states({node.name: node for node in nodes}, agents, view))
    index.put_events({event.uid: event for event in events})
    index.put_small(
        SmallFacts(
            sources=view.sources if view is not None else (),
            queues=tuple(queues),
            quotas=tuple(quotas),
            pod_groups=tuple(pod_groups),
            workloads=tuple(workloads),
            devices=devices or NO_DEVICES,
        )
    )
    return index.facts


def node_states(
    nodes: Mapping[str, NodeFact], agents: Iterable[AgentFact], view: ClusterView | None
) -> dict[str, KnownNode]:
    """Everything known about each node, sorted by name."""
    heard = sorted(agents, key=lambda agent: (agent.received_at or 0.0, agent.target))
    agent_of = {agent.node or agent.target: agent for agent in heard}
    views = {node.name: node for node in view.nodes} if view is not None else {}
    gpus: Mapping[str, tuple[GpuView, ...]] = view.gpus_by_node if view is not None else {}
    names = nodes.keys() | agent_of.keys() | views.keys() | gpus.keys()
    return {
        name: KnownNode(nodes.get(name), agent_of.get(name), views.get(name), gpus.get(name, ()))
        for name in sorted(names)
    }


def _set(mapping: dict[K, V], key: K, value: V | None) -> None:
    """Set a value, or remove it if it is None."""
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def _note_held(held: _HeldGpus, node: str, before: Iterable[GpuView], after: Iterable[GpuView]) -> None:
    """Note the GPUs that pods hold now on a node on which they held some before."""
    for gpu in before:
        for holder in gpu.holders:
            if holder.pod_uid is not None:
                held.setdefault(holder.pod_uid, {})[node] = []
    for gpu in after:
        for holder in gpu.holders:
            if holder.pod_uid is not None:
                held.setdefault(holder.pod_uid, {}).setdefault(node, []).append(gpu)


def _move(
    uid: str, by_node: _Pods, before: PodFact | None, after: PodFact | None, node_of: Callable[[PodFact], str | None]
) -> set[str]:
    """Move a pod from the node that it was on to the one that it is on, and return both."""
    old, new = (node_of(pod) if pod is not None else None for pod in (before, after))
    if old is not None and old != new:
        by_node[old].pop(uid, None)
    if new is not None and after is not None:
        by_node[new][uid] = after
    return {node for node in (old, new) if node is not None}


def _node(pod: PodFact) -> str | None:
    return pod.node


def _nominated_node(pod: PodFact) -> str | None:
    """Node nominated for a pending pod."""
    return pod.nominated_node if pod.node is None and not pod.finished else None


def _is_pending(pod: PodFact) -> bool:
    return pod.node is None and pod.deletion_at is None and not pod.finished


def _total_requests(pods: Iterable[PodFact]) -> Amounts:
    pods = tuple(pods)
    total: Amounts = {"pods": float(len(pods))}
    for pod in pods:
        for name, amount in pod.requests.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def _current(agent: AgentFact | None) -> NodeSnapshot | None:
    """Snapshot of an agent that answers."""
    return agent.snapshot if agent is not None and agent.silent_since is None else None


def _with_event(events: tuple[EventFact, ...], event: EventFact, *, add: bool) -> tuple[EventFact, ...]:
    """Events with or without one of them, oldest first."""
    others = [other for other in events if other.uid != event.uid]
    if add:
        insort(others, event, key=_event_order)
    return tuple(others)


def _event_order(event: EventFact) -> tuple[float, str]:
    return event.last_at or 0.0, event.uid


def _groups(pod_groups: Iterable[PodGroupFact]) -> dict[tuple[str, str], PodGroupFact]:
    """PodGroups by namespace and each name that their pods may use to refer to them."""
    groups: dict[tuple[str, str], PodGroupFact] = {}
    for group in pod_groups:
        owner = group.owner
        for reference in (owner.name if owner else None, owner.uid if owner else None, group.name):
            if reference:
                groups[group.namespace, reference] = group
    return groups


def _workloads(items: Iterable[WorkloadFact]) -> dict[tuple[str, str], WorkloadFact]:
    workloads: dict[tuple[str, str], WorkloadFact] = {}
    for workload in items:
        workloads[workload.namespace, workload.name] = workload
        if workload.owner and workload.owner.uid:
            workloads[workload.namespace, workload.owner.uid] = workload
            workloads[workload.namespace, f"{workload.owner.kind}/{workload.owner.name}"] = workload
    return workloads
