"""The join: agents, pods, nodes and queues in, one consistent ClusterView out.

The parts are pure functions. `ViewBuilder` keeps between two views what need not be computed again (identities, use),
and what has to be remembered (since when a card is idle, since when a pod is missing) as a value that can be saved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from monitor.cluster.capacity import free_by_model, queue_views
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.holders import PodIndex, allocation_key, find_pod, index_pods
from monitor.cluster.node_join import CardMemory, NodeInputs, card_key, join_node
from monitor.cluster.usage import pod_usage, user_usage
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuView, Identity, PodView, SourceView, UsageView
from monitor.facts.kube import NodeFact, PodFact, QueueFact

Identify = Callable[[PodFact], Identity]
FINISHED = ("Succeeded", "Failed")


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What one view needs to know of the ones before it."""

    cards: dict[str, CardMemory] = msgspec.field(default_factory=dict)
    missing: dict[str, float] = msgspec.field(
        default_factory=dict
    )  # pod -> since when nodes name it and nobody else does


@dataclass(frozen=True)
class Inputs:
    """The facts that a view is made of. `pods_known` is False while Kubernetes cannot be asked."""

    agents: tuple[AgentFact, ...] = ()
    pods: tuple[PodFact, ...] = ()
    nodes: tuple[NodeFact, ...] = ()
    queues: tuple[QueueFact, ...] = ()
    sources: tuple[SourceView, ...] = ()
    pods_known: bool = False


@dataclass
class ViewBuilder:
    """Makes views, one after the other."""

    identify: Identify
    resource: str = "nvidia.com/gpu"
    limits: StateLimits = field(default_factory=StateLimits)
    memory: Memory = field(default_factory=Memory)
    _pods: dict[str, tuple[PodFact, UsageView | None, PodView]] = field(default_factory=dict)
    _usage: dict[str, tuple[AgentFact, dict[str, UsageView]]] = field(default_factory=dict)
    _identities: dict[str, tuple[PodFact, Identity]] = field(default_factory=dict)

    def build(self, inputs: Inputs, now: float) -> ClusterView:
        """Given the facts of this moment, return the view and remember what the next one needs."""
        by_uid, by_name = index_pods(inputs.pods)
        missing = _missing(inputs, by_uid, by_name, self.memory.missing, now)
        index = PodIndex(by_uid, by_name, missing, inputs.pods_known, self.limits.terminating_grace, self.limits.settle)
        identities = self._identify_all(inputs.pods)
        joined = [
            join_node(node, index, identities, self.memory.cards, self.limits, now) for node in self._nodes(inputs)
        ]
        nodes = tuple(node for node, _ in joined)
        gpus = tuple(gpu for _, cards in joined for gpu in cards)
        self.memory = Memory(cards=_remember(gpus, self.memory.cards), missing=missing)
        pods = self._pod_views(inputs, identities)
        return ClusterView(
            at=now,
            nodes=nodes,
            gpus=gpus,
            pods=pods,
            free=free_by_model(nodes),
            queues=queue_views(pods, inputs.queues, self.resource),
            users=user_usage(pods),
            sources=inputs.sources,
        )

    def _nodes(self, inputs: Inputs) -> Iterable[NodeInputs]:
        """Yield each node that Kubernetes or an agent knows, in the order of their names."""
        bound: defaultdict[str, list[PodFact]] = defaultdict(list)
        for pod in inputs.pods:
            if pod.node is not None and pod.phase not in FINISHED:
                bound[pod.node].append(pod)
        nodes = {node.name: node for node in inputs.nodes}
        agents = {agent.node or agent.target: agent for agent in inputs.agents}
        for name in sorted(nodes.keys() | agents.keys()):
            yield NodeInputs(name, agents.get(name), nodes.get(name), tuple(bound.get(name, ())), self.resource)

    def _identify_all(self, pods: tuple[PodFact, ...]) -> dict[str, Identity]:
        kept = {}
        for pod in pods:
            before = self._identities.get(pod.uid)
            kept[pod.uid] = before if before is not None and before[0] is pod else (pod, self.identify(pod))
        self._identities = kept
        return {uid: identity for uid, (_, identity) in kept.items()}

    def _pod_views(self, inputs: Inputs, identities: Mapping[str, Identity]) -> tuple[PodView, ...]:
        usage = self._all_usage(inputs.agents)
        kept = {}
        for pod in inputs.pods:
            if pod.phase in FINISHED:
                continue
            use, before = usage.get(pod.uid), self._pods.get(pod.uid)
            if before is not None and before[0] is pod and before[1] is use:
                kept[pod.uid] = before
            else:
                kept[pod.uid] = (pod, use, _pod_view(pod, use, identities[pod.uid], self.resource))
        self._pods = kept
        return tuple(sorted((view for _, _, view in kept.values()), key=lambda v: (v.namespace, v.name, v.uid)))

    def _all_usage(self, agents: Iterable[AgentFact]) -> dict[str, UsageView]:
        kept = {}
        for agent in agents:
            if agent.snapshot is None or agent.silent_since is not None:
                continue
            before = self._usage.get(agent.target)
            kept[agent.target] = (
                before if before is not None and before[0] is agent else (agent, pod_usage(agent.snapshot))
            )
        self._usage = kept
        return {uid: use for _, uses in kept.values() for uid, use in uses.items()}


def _pod_view(pod: PodFact, use: UsageView | None, identity: Identity, resource: str) -> PodView:
    requested = pod.requests.get(resource, 0.0)
    return PodView(
        uid=pod.uid,
        name=pod.name,
        namespace=pod.namespace,
        phase=pod.phase,
        identity=identity,
        node=pod.node,
        created_at=pod.created_at,
        requested_gpus=requested,
        usage=msgspec.structs.replace(use or UsageView(), gpus=requested),
    )


def _missing(
    inputs: Inputs,
    by_uid: Mapping[str, PodFact],
    by_name: Mapping[tuple[str, str], PodFact],
    before: Mapping[str, float],
    now: float,
) -> dict[str, float]:
    """Return the pods that nodes name and Kubernetes does not know, each with since when."""
    if not inputs.pods_known:
        return dict(before)
    named: set[str] = set()
    for agent in inputs.agents:
        snapshot = agent.snapshot
        if snapshot is None:
            continue
        named |= {p.pod_uid for p in snapshot.gpu_processes or () if p.pod_uid and p.pod_uid not in by_uid}
        for device in snapshot.pod_devices or ():
            key = allocation_key(device)
            if key is not None and find_pod(device, by_uid, by_name) is None:
                named.add(key)
    return {key: before.get(key, now) for key in sorted(named)}


def _remember(gpus: Iterable[GpuView], before: Mapping[str, CardMemory]) -> dict[str, CardMemory]:
    """Remember each card. While a card is unknown its idleness is not forgotten, only not added to."""
    cards = {}
    for gpu in gpus:
        key = card_key(gpu.node, gpu.uuid, gpu.index)
        old = before.get(key)
        idle = gpu.idle_since if gpu.state.value != "unknown" else (old.idle_since if old else None)
        cards[key] = CardMemory(state=gpu.state, since=gpu.since or 0.0, idle_since=idle)
    return cards
