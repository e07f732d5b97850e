"""Joins agents, pods, nodes and queues into one consistent ClusterView.

`build` takes all facts; `update` takes the changes since then and joins only the affected nodes. Both result in the
same view, which is put together when it is asked for. State carried over from one view to the next (since when a GPU
is idle or a pod missing) is a value that can be saved and restored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set
from itertools import chain

import msgspec

from monitor.cluster.capacity import counted_for_free, free_by_model
from monitor.cluster.claims import ClaimCache, NodeInputs, named_pods
from monitor.cluster.devices import JoinedDevices
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.holders import PodLookup
from monitor.cluster.node_join import GpuMemory, gpu_memory_key, join_node
from monitor.cluster.pod_index import Identify, PodIndex
from monitor.cluster.usage import next_pod_usage
from monitor.cluster.view_changes import changed_agent_parts, changed_view_parts
from monitor.cluster.view_inputs import ClusterContext, ViewChanges, ViewInputs
from monitor.facts.agents import AgentFact
from monitor.facts.changes import ALL_PARTS, KUBERNETES_NODE, ChangeLog, Changes
from monitor.facts.cluster import ClusterView, FreeView, GpuState, GpuView, Identity, NodeView, PodView, UsageView
from monitor.facts.facts_index import KnownNode, KnownPod
from monitor.facts.gpu_resources import resource_kinds
from monitor.facts.kube import NodeFact, PodFact
from monitor.facts.node import NodeSnapshot


class ViewMemory(msgspec.Struct, frozen=True, kw_only=True):
    """State carried over from one view to the next."""

    cards: dict[str, GpuMemory] = msgspec.field(default_factory=dict)
    missing: dict[str, float] = msgspec.field(
        default_factory=dict
    )  # pod named by a node but unknown to Kubernetes -> since when


class ViewBuilder:
    """Builds and updates views. Used from one thread."""

    def __init__(
        self,
        identify: Identify,
        resource: str = "nvidia.com/gpu",
        limits: StateLimits | None = None,
        memory: ViewMemory | None = None,
    ) -> None:
        self._resource = resource
        self._limits = limits or StateLimits()
        self._pods = PodIndex(identify, resource)
        memory = memory or ViewMemory()
        self._gpus = dict(memory.cards)
        self._missing = dict(memory.missing)
        self._context = ClusterContext()
        self._by_target: dict[str, AgentFact] = {}
        self._agents: dict[str, AgentFact] = {}  # by node: of several, the one heard last
        self._nodes: dict[str, NodeFact] = {}
        self._usage: dict[str, tuple[AgentFact, dict[str, UsageView]]] = {}  # by node
        self._joined: dict[str, tuple[NodeView, tuple[GpuView, ...]]] = {}
        self._order: list[str] | None = None  # names of the joined nodes; None: another node is known
        self._free: tuple[FreeView, ...] | None = None  # None: what they are determined from has changed
        self._named: dict[str, dict[str, bool]] = {}  # node -> pod that it names -> whether Kubernetes knows the pod
        self._named_by: defaultdict[str, set[str]] = defaultdict(set)  # pod -> nodes that name it
        self._log = ChangeLog()
        self._claims = ClaimCache()
        self._devices = JoinedDevices(resource)
        self._at = 0.0

    @property
    def memory(self) -> ViewMemory:
        """State for the next view, as a value."""
        return ViewMemory(cards=dict(self._gpus), missing=dict(self._missing))

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes."""
        return tuple(self._joined)

    @property
    def identities(self) -> dict[str, Identity]:
        """Identities of all pods, by uid."""
        return dict(self._pods.identities)

    @property
    def targets(self) -> Set[str]:
        """Targets of all agents."""
        return self._by_target.keys()

    def identify_again(self, owners: Set[str]) -> None:
        """Identify pods again after a change of their owners: ReplicaSets and Jobs by uid, namespaces by name."""
        changed = self._pods.identify_again(owners)
        self._log.pods |= changed
        for uid in changed:
            self._claims.forget(self._nodes_naming(self._pods.by_uid.get(uid)))

    def forget_unseen(self) -> None:
        """Drop state from before a restart of GPUs and pods that have not been reported since."""
        seen = {gpu_memory_key(gpu.node, gpu.uuid, gpu.index) for _, gpus in self._joined.values() for gpu in gpus}
        self._gpus = {key: memory for key, memory in self._gpus.items() if key in seen}
        self._missing = {key: since for key, since in self._missing.items() if key in self._named_by}

    def build(self, inputs: ViewInputs, now: float) -> ViewBuilder:
        """Take over all facts of this moment."""
        self._log.complete, self._at = True, now
        self._claims = ClaimCache()
        self._context = inputs.around
        self._nodes = {node.name: node for node in inputs.nodes}
        self._by_target = {agent.target: agent for agent in inputs.agents}
        self._agents = {_node_of(agent): agent for agent in sorted(inputs.agents, key=_last_heard)}
        self._read_usage()
        pods = self._devices.build(inputs.around.devices, inputs.pods)
        self._pods.replace(pods)  # after the usage, so that each pod view is built once
        names = self._nodes.keys() | self._agents.keys()
        for name in self._joined.keys() - names:
            self._forget_node(name)
        self._join(names, now)
        return self

    def update(self, changes: ViewChanges, now: float) -> ViewBuilder:
        """Take over changes."""
        self._at = now
        affected = set(changes.again)
        if changes.around is not None:
            affected |= self._change_context(changes.around)
        for uid, pod in changes.pods.items():
            affected |= self._change_pod(uid, pod)
        for name, node in changes.nodes.items():
            self._change_node(name, node)
            affected.add(name)
        for agent in changes.agents:
            affected |= self._change_agent(agent)
        for target in changes.gone:
            affected |= self._drop_agent(target)
        self._join([name for name in affected if name in self._nodes or name in self._agents], now)
        return self

    def take_changes(self) -> tuple[Changes, dict[str, KnownNode | None], dict[str, KnownPod | None]]:
        """What has changed since the last call, with the present state of the nodes and pods concerned."""
        changes = self._log.take()
        names: Iterable[str] = self._joined if changes.complete else changes.nodes
        uids: Iterable[str] = self._pods.identities if changes.complete else changes.pods
        return changes, {name: self._node_state(name) for name in names}, {uid: self._pods.state(uid) for uid in uids}

    def _node_state(self, name: str) -> KnownNode | None:
        if name not in self._joined:
            return None
        view, gpus = self._joined[name]
        return KnownNode(self._offering(name), self._agents.get(name), view, gpus)

    def _offering(self, name: str) -> NodeFact | None:
        """A node with the GPUs that DRA drivers offer on it."""
        return self._devices.node(self._nodes.get(name), self._agents.get(name))

    @property
    def nodes(self) -> tuple[NodeFact, ...]:
        """Nodes of Kubernetes, with the GPUs that DRA drivers offer."""
        return tuple(node for name in self._nodes if (node := self._offering(name)) is not None)

    @property
    def pods(self) -> tuple[PodFact, ...]:
        """Pods of Kubernetes, with the GPUs of their claims."""
        return self._pods.facts()

    def _change_context(self, context: ClusterContext) -> set[str]:
        """Replace the facts that belong to no single node, and return the nodes whose GPUs or pods they change."""
        before, self._context = self._context, context
        if context.pods_known != before.pods_known:
            self._claims = ClaimCache()
        if context.devices == before.devices:
            return set()
        pods, affected = self._devices.change(context.devices)
        self._claims.forget(affected)
        for name in affected:
            self._log.nodes[name].add(KUBERNETES_NODE)
        for uid, pod in pods.items():
            affected |= self._change_pod(uid, pod)
        return affected

    def _change_pod(self, uid: str, pod: PodFact | None) -> set[str]:
        """Update or remove a pod, and return the nodes that name it or on which it requests GPUs."""
        before, affected = self._pods.by_uid.get(uid), set[str]()
        self._log.pods.add(uid)
        if pod is not None:
            affected |= self._pods.put(self._devices.put(pod))
        elif before is not None:
            self._devices.drop(uid)
            affected |= self._pods.drop(uid)
        if not any(resource_kinds(known.requests) for known in (before, self._pods.by_uid.get(uid)) if known):
            affected.clear()
        affected |= self._nodes_naming(before) | self._nodes_naming(pod)
        self._claims.forget(affected)
        return affected

    def _nodes_naming(self, pod: PodFact | None) -> set[str]:
        """Nodes that name a pod, by uid or by name."""
        if pod is None:
            return set()
        keys = (pod.uid, f"{pod.namespace}/{pod.name}")
        return set[str]().union(*(self._named_by[key] for key in keys if key in self._named_by))

    def _change_agent(self, agent: AgentFact) -> set[str]:
        """Update an agent. Until it has answered for the first time, its target stands for its node."""
        name, before = _node_of(agent), self._by_target.get(agent.target)
        affected = self._drop_agent(agent.target) if before is not None and _node_of(before) != name else set()
        self._by_target[agent.target] = agent
        rival = self._agents.get(name)
        if rival is None or rival.target == agent.target or _last_heard(rival) <= _last_heard(agent):
            self._log.nodes[name] |= changed_agent_parts(rival, agent)
            self._agents[name] = agent
            self._take_usage(name, agent)
        return affected | {name}

    def _drop_agent(self, target: str) -> set[str]:
        """Remove an agent, and its node unless Kubernetes or another agent knows it."""
        agent = self._by_target.pop(target, None)
        if agent is None:
            return set()
        name = _node_of(agent)
        if self._agents[name].target == target:
            others = [other for other in self._by_target.values() if _node_of(other) == name]
            self._log.nodes[name] |= ALL_PARTS
            del self._agents[name]
            if others:
                self._agents[name] = max(others, key=_last_heard)
            elif name not in self._nodes:
                self._forget_node(name)
            self._take_usage(name, self._agents.get(name))
        return {name}

    def _change_node(self, name: str, node: NodeFact | None) -> None:
        """Update or remove a node."""
        self._log.nodes[name].add(KUBERNETES_NODE)
        if node is not None:
            self._nodes[name] = node
            return
        self._nodes.pop(name, None)
        if name not in self._agents:
            self._forget_node(name)

    def _join(self, names: Iterable[str], now: float) -> None:
        """Join these nodes again, and update the carried-over state of their GPUs."""
        limits, pods = self._limits, self._pods
        known = self._context.pods_known
        lookup = PodLookup(pods.by_uid, pods.by_name, self._missing, known, limits.terminating_grace, limits.settle)
        for name in sorted(names):
            bound = tuple(pods.bound[name].values()) if name in pods.bound else ()
            agent, node = self._agents.get(name), self._offering(name)
            inputs = NodeInputs(name, agent, node, bound, self._resource, self._devices.index)
            claims = self._claims.known(inputs)
            if claims is None:
                self._note_missing(name, now)
                claims = self._claims.determine(inputs, lookup, pods.identities, now)
            joined = join_node(inputs, claims, self._gpus, limits, now)
            self._note_joined(name, joined)
            pods.gpu_nodes.put(name, node, joined[0])
            for gpu in joined[1]:
                self._remember(gpu)
        self._log.pods |= pods.count_again()

    def _note_joined(self, name: str, joined: tuple[NodeView, tuple[GpuView, ...]]) -> None:
        """Replace a joined node, and note what differs."""
        before, self._joined[name] = self._joined.get(name), joined
        self._log.nodes[name] |= changed_view_parts(before, joined)
        if before is None:
            self._order = None
        if before is None or counted_for_free(before[0]) != counted_for_free(joined[0]):
            self._free = None

    def _remember(self, gpu: GpuView) -> None:
        """Carry over the state of a GPU. While it is unknown, the start of its idleness is kept."""
        key = gpu_memory_key(gpu.node, gpu.uuid, gpu.index)
        before = self._gpus.get(key)
        idle_since = gpu.idle_since
        if gpu.state is GpuState.UNKNOWN and before is not None:
            idle_since = before.idle_since
        self._gpus[key] = GpuMemory(state=gpu.state, since=gpu.since or 0.0, idle_since=idle_since)

    def _forget_node(self, name: str) -> None:
        _, gpus = self._joined.pop(name, (None, ()))
        self._order = self._free = None
        self._pods.gpu_nodes.drop(name)
        self._log.nodes[name] |= ALL_PARTS
        for gpu in gpus:
            self._gpus.pop(gpu_memory_key(gpu.node, gpu.uuid, gpu.index), None)
        self._name_pods(name, {})
        self._claims.forget((name,))

    def _note_missing(self, name: str, now: float) -> None:
        """Record since when pods named by a node are unknown to Kubernetes, unless it is out of reach."""
        named = dict(named_pods(self._agents.get(name), self._devices.index.claimed(name), self._pods))
        self._name_pods(name, named)
        for key, known in named.items():
            if known:
                self._missing.pop(key, None)
            elif self._context.pods_known:
                self._missing[key] = min(self._missing.get(key, now), now)

    def _name_pods(self, node: str, named: dict[str, bool]) -> None:
        """Replace the pods that a node names."""
        for key in self._named.get(node, {}).keys() - named.keys():
            self._named_by[key].discard(node)
            if not self._named_by[key]:
                del self._named_by[key]
                self._missing.pop(key, None)
        for key in named:
            self._named_by[key].add(node)
        self._named[node] = named

    def _read_usage(self) -> None:
        for name in self._agents.keys() | self._usage.keys():
            agent = self._agents.get(name)
            if name not in self._usage or self._usage[name][0] is not agent:
                self._take_usage(name, agent)

    def _take_usage(self, name: str, agent: AgentFact | None) -> None:
        """Update the usage of a node's pods. It is unknown while the agent is silent."""
        known, before = self._usage.pop(name, (None, {}))
        usage = next_pod_usage(_current(agent), _current(known), before)
        if agent is not None:
            self._usage[name] = (agent, usage)
        self._pods.use(name, {**dict.fromkeys(before.keys() - usage.keys()), **usage})

    def view(self) -> ClusterView:
        """The joined view as a whole; equal facts give an equal view."""
        return self._view_with(self._pods.views())

    def overview(self) -> ClusterView:
        """The same with only those pods that are not scheduled yet, which costs a fraction."""
        return self._view_with(self._pods.waiting_views())

    def _view_with(self, pods: tuple[PodView, ...]) -> ClusterView:
        if self._order is None:
            self._order = sorted(self._joined)
        joined = [self._joined[name] for name in self._order]
        nodes = tuple([node for node, _ in joined])
        if self._free is None:
            self._free = free_by_model(nodes)
        gpus = {name: gpus for name, (_, gpus) in zip(self._order, joined, strict=True) if gpus}
        return ClusterView(
            at=self._at,
            nodes=nodes,
            gpus=tuple(chain.from_iterable(gpus.values())),
            pods=pods,
            free=self._free,
            queues=self._pods.queue_views(self._context.queues),
            users=self._pods.users(),
            sources=self._context.sources,
        ).with_known_nodes(gpus)


def _node_of(agent: AgentFact) -> str:
    """Node of an agent; its target until the node is known."""
    return agent.node or agent.target


def _current(agent: AgentFact | None) -> NodeSnapshot | None:
    """Snapshot of an agent that answers."""
    return agent.snapshot if agent is not None and agent.silent_since is None else None


def _last_heard(agent: AgentFact) -> tuple[float, str]:
    return agent.received_at or 0.0, agent.target
