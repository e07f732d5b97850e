"""The join: agents, pods, nodes and queues in, one consistent ClusterView out.

`build` takes everything there is; `update` takes what has changed since, and joins only the nodes that it concerns.
Both end in the same view. What has to be remembered from one view to the next (since when a card is idle, since when a
pod is missing) is a value that can be saved and given back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from monitor.cluster.capacity import free_by_model, queue_views
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.holders import PodLookup, allocation_key, find_pod
from monitor.cluster.node_join import GpuMemory, NodeInputs, gpu_memory_key, join_node
from monitor.cluster.pod_index import Identify, PodIndex
from monitor.cluster.usage import pod_usage
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView, SourceView, UsageView
from monitor.facts.kube import NodeFact, PodFact, QueueFact


class ViewMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What one view needs to know of the ones before it."""

    cards: dict[str, GpuMemory] = msgspec.field(default_factory=dict)
    missing: dict[str, float] = msgspec.field(default_factory=dict)  # pods that nodes name and nobody else, since when


@dataclass(frozen=True)
class ClusterContext:
    """What concerns no single node. `pods_known` is False while Kubernetes cannot be asked."""

    queues: tuple[QueueFact, ...] = ()
    sources: tuple[SourceView, ...] = ()
    pods_known: bool = False


@dataclass(frozen=True)
class ViewInputs:
    """The facts that a view is made of."""

    agents: tuple[AgentFact, ...] = ()
    pods: tuple[PodFact, ...] = ()
    nodes: tuple[NodeFact, ...] = ()
    around: ClusterContext = ClusterContext()


@dataclass(frozen=True)
class ViewChanges:
    """What has happened since: pods by uid and nodes by name (None: gone), agents that have answered or failed to.

    `gone` are the addresses of agents that there are no more, `again` nodes to be joined because time has passed;
    `around` is given when the surroundings were looked at anew.
    """

    pods: Mapping[str, PodFact | None] = field(default_factory=dict)
    nodes: Mapping[str, NodeFact | None] = field(default_factory=dict)
    agents: tuple[AgentFact, ...] = ()
    gone: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()
    around: ClusterContext | None = None

    def __bool__(self) -> bool:
        """Return whether there is anything."""
        return bool(self.pods or self.nodes or self.agents or self.gone or self.again or self.around)


class ViewBuilder:
    """Makes views, one after the other. Used from one thread."""

    def __init__(
        self,
        identify: Identify,
        resource: str = "nvidia.com/gpu",
        limits: StateLimits | None = None,
        memory: ViewMemory | None = None,
    ) -> None:
        self._resource = resource
        self._limits = limits or StateLimits()
        self._book = PodIndex(identify, resource)
        memory = memory or ViewMemory()
        self._cards = dict(memory.cards)
        self._missing = dict(memory.missing)
        self._around = ClusterContext()
        self._spoken: dict[str, AgentFact] = {}  # by target
        self._agents: dict[str, AgentFact] = {}  # by node: of several, the one that was heard last
        self._nodes: dict[str, NodeFact] = {}
        self._usage: dict[str, tuple[AgentFact, dict[str, UsageView]]] = {}  # by node
        self._joined: dict[str, tuple[NodeView, tuple[GpuView, ...]]] = {}
        self._named: dict[str, dict[str, bool]] = {}  # node -> the pods it names -> whether Kubernetes knows them
        self._named_by: defaultdict[str, set[str]] = defaultdict(set)  # pod -> the nodes that name it

    @property
    def memory(self) -> ViewMemory:
        """Return what the next view needs to know, as a value."""
        return ViewMemory(cards=dict(self._cards), missing=dict(self._missing))

    @property
    def node_names(self) -> tuple[str, ...]:
        """Return the nodes that are known."""
        return tuple(self._joined)

    @property
    def targets(self) -> Set[str]:
        """Return the targets of the agents that are known."""
        return self._spoken.keys()

    def identify_again(self, owners: Set[str]) -> None:
        """Tell that something is known of these ReplicaSets and Jobs, by uid, and namespaces, by name."""
        self._book.identify_again(owners)

    def forget_unseen(self) -> None:
        """Forget what was remembered from before a restart of cards and pods that nobody has named since."""
        seen = {gpu_memory_key(gpu.node, gpu.uuid, gpu.index) for _, gpus in self._joined.values() for gpu in gpus}
        self._cards = {key: card for key, card in self._cards.items() if key in seen}
        self._missing = {key: since for key, since in self._missing.items() if key in self._named_by}

    def build(self, inputs: ViewInputs, now: float) -> ClusterView:
        """Given the facts of this moment, return the view."""
        self._around = inputs.around
        self._nodes = {node.name: node for node in inputs.nodes}
        self._spoken = {agent.target: agent for agent in inputs.agents}
        self._agents = {_node_of(agent): agent for agent in sorted(inputs.agents, key=_last_heard)}
        self._read_usage()
        self._book.replace(inputs.pods)  # after what they use is known, so that each is made up once
        names = self._nodes.keys() | self._agents.keys()
        for name in self._joined.keys() - names:
            self._forget_node(name)
        self._join(names, now)
        return self._view(now)

    def update(self, changes: ViewChanges, now: float) -> ClusterView:
        """Given what has changed since the last view, return the next one."""
        self._around = changes.around or self._around
        touched = set(changes.again)
        for uid, pod in changes.pods.items():
            touched |= self._change_pod(uid, pod)
        for name, node in changes.nodes.items():
            touched |= self._change_node(name, node)
        for agent in changes.agents:
            touched |= self._change_agent(agent)
        for target in changes.gone:
            touched |= self._drop_agent(target)
        self._join(touched & (self._nodes.keys() | self._agents.keys()), now)
        return self._view(now)

    def _change_pod(self, uid: str, pod: PodFact | None) -> set[str]:
        """Take a changed pod, or drop one that is gone. Return the nodes that it is on, or that name it."""
        before, touched = self._book.by_uid.get(uid), set[str]()
        if pod is not None:
            touched |= self._book.put(pod)
        elif before is not None:
            touched |= self._book.drop(uid)
        for known in (before, pod):
            if known is not None:
                touched |= self._named_by.get(known.uid, set())
                touched |= self._named_by.get(f"{known.namespace}/{known.name}", set())
        return touched

    def _change_agent(self, agent: AgentFact) -> set[str]:
        """Take an agent's news. Until it has spoken for the first time it goes by its address."""
        name, before = _node_of(agent), self._spoken.get(agent.target)
        touched = self._drop_agent(agent.target) if before is not None and _node_of(before) != name else set()
        self._spoken[agent.target] = agent
        rival = self._agents.get(name)
        if rival is None or rival.target == agent.target or _last_heard(rival) <= _last_heard(agent):
            self._agents[name] = agent
            self._take_usage(name, agent)
        return touched | {name}

    def _drop_agent(self, target: str) -> set[str]:
        """Forget an agent that is gone. Its node goes with it, unless Kubernetes or another agent knows it."""
        agent = self._spoken.pop(target, None)
        if agent is None:
            return set()
        name = _node_of(agent)
        if self._agents[name].target == target:
            others = [other for other in self._spoken.values() if _node_of(other) == name]
            del self._agents[name]
            if others:
                self._agents[name] = max(others, key=_last_heard)
            elif name not in self._nodes:
                self._forget_node(name)
            self._take_usage(name, self._agents.get(name))
        return {name}

    def _change_node(self, name: str, node: NodeFact | None) -> set[str]:
        """Take a changed node, or drop one that is gone. Return it, if it has to be joined again."""
        if node is not None:
            self._nodes[name] = node
            return {name}
        self._nodes.pop(name, None)
        if name not in self._agents:
            self._forget_node(name)
        return {name}

    def _join(self, names: Iterable[str], now: float) -> None:
        """Join these nodes anew, and remember what is to be remembered of them."""
        names = sorted(names)
        self._note_missing(names, now)
        limits, book = self._limits, self._book
        known = self._around.pods_known
        index = PodLookup(book.by_uid, book.by_name, self._missing, known, limits.terminating_grace, limits.settle)
        for name in names:
            pods = tuple(book.bound[name].values()) if name in book.bound else ()
            inputs = NodeInputs(name, self._agents.get(name), self._nodes.get(name), pods, self._resource)
            self._joined[name] = joined = join_node(inputs, index, book.identities, self._cards, limits, now)
            for gpu in joined[1]:
                self._remember(gpu)

    def _remember(self, gpu: GpuView) -> None:
        """While a card is unknown its idleness is not forgotten, only not added to."""
        key = gpu_memory_key(gpu.node, gpu.uuid, gpu.index)
        before = self._cards.get(key)
        idle = gpu.idle_since
        if gpu.state is GpuState.UNKNOWN and before is not None:
            idle = before.idle_since
        self._cards[key] = GpuMemory(state=gpu.state, since=gpu.since or 0.0, idle_since=idle)

    def _forget_node(self, name: str) -> None:
        _, gpus = self._joined.pop(name, (None, ()))
        for gpu in gpus:
            self._cards.pop(gpu_memory_key(gpu.node, gpu.uuid, gpu.index), None)
        self._name_pods(name, {})

    def _note_missing(self, names: list[str], now: float) -> None:
        """Note since when pods that these nodes name are unknown to Kubernetes. Nothing while it cannot be asked."""
        for name in names:
            named = dict(_named_pods(self._agents.get(name), self._book))
            self._name_pods(name, named)
            for key, found in named.items():
                if found:
                    self._missing.pop(key, None)
                elif self._around.pods_known:
                    self._missing[key] = min(self._missing.get(key, now), now)

    def _name_pods(self, node: str, named: dict[str, bool]) -> None:
        """Note which pods a node names now, and that it does not name others any more."""
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
        """What a silent node's pods use is not known, whatever they used when it last spoke."""
        fresh = agent is not None and agent.silent_since is None
        uses = pod_usage(agent.snapshot) if fresh and agent is not None and agent.snapshot is not None else {}
        _, old = self._usage.pop(name, (None, {}))
        if agent is not None:
            self._usage[name] = (agent, uses)
        self._book.use(name, {**dict.fromkeys(old.keys() - uses.keys()), **uses})

    def _view(self, now: float) -> ClusterView:
        joined = [self._joined[name] for name in sorted(self._joined)]
        nodes = tuple(node for node, _ in joined)
        return ClusterView(
            at=now,
            nodes=nodes,
            gpus=tuple(chain.from_iterable(cards for _, cards in joined)),
            pods=self._book.views(),
            free=free_by_model(nodes),
            queues=queue_views(self._book.queues(), self._around.queues, self._resource),
            users=self._book.users(),
            sources=self._around.sources,
        )


def _node_of(agent: AgentFact) -> str:
    """Return the node that an agent speaks for; its address stands for it until it is known."""
    return agent.node or agent.target


def _last_heard(agent: AgentFact) -> tuple[float, str]:
    return agent.received_at or 0.0, agent.target


def _named_pods(agent: AgentFact | None, book: PodIndex) -> Iterable[tuple[str, bool]]:
    """Yield the pods that a node names, each with whether Kubernetes knows it."""
    snapshot = agent.snapshot if agent else None
    if snapshot is None:
        return
    for process in snapshot.gpu_processes or ():
        if process.pod_uid is not None:
            yield process.pod_uid, process.pod_uid in book.by_uid
    for device in snapshot.pod_devices or ():
        key = allocation_key(device)
        if key is not None:
            yield key, find_pod(device, book.by_uid, book.by_name) is not None
