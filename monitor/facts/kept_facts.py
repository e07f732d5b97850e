"""Cluster facts of successive moments in one index: only what has changed since the last moment is indexed again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, Identity
from monitor.facts.cluster_facts import NO_IDENTITY, ClusterFacts
from monitor.facts.facts_index import FactsIndex, KnownNode, KnownPod, SmallFacts, node_states
from monitor.facts.kube import EventFact, NodeFact, PodFact

V = TypeVar("V")
NO_SMALL_FACTS = SmallFacts()


@dataclass(frozen=True)
class Moment:
    """Everything known at one moment."""

    view: ClusterView
    agents: Sequence[AgentFact] = ()
    pods: Sequence[PodFact] = ()
    nodes: Sequence[NodeFact] = ()
    events: Sequence[EventFact] = ()
    identities: Mapping[str, Identity] | None = None
    small: SmallFacts = NO_SMALL_FACTS


class KeptFacts:
    """Facts that follow the moments given. The result changes with the next moment: one thread at a time may use it."""

    def __init__(self, resource: str) -> None:
        self._index = FactsIndex(resource)
        self._pods: dict[str, tuple[PodFact, Identity]] = {}
        self._nodes: dict[str, KnownNode] = {}
        self._events: dict[str, EventFact] = {}

    def at(self, moment: Moment) -> ClusterFacts:
        """The facts of this moment."""
        self._put_pods(moment.pods, moment.identities or {})
        self._put_nodes(moment)
        events = {event.uid: event for event in moment.events}
        self._index.put_events(_changes(self._events, events))
        self._events = events
        self._index.put_small(moment.small)
        return self._index.facts

    def _put_pods(self, pods: Iterable[PodFact], identities: Mapping[str, Identity]) -> None:
        known, new, changed = self._pods, dict[str, tuple[PodFact, Identity]](), dict[str, KnownPod | None]()
        for pod in pods:
            uid = pod.uid
            identity = identities.get(uid, NO_IDENTITY)
            old = known.get(uid)
            if old is not None and old[0] is pod and old[1] is identity:
                new[uid] = old
            else:
                new[uid] = pod, identity
                changed[uid] = KnownPod(pod, identity)
        gone = dict.fromkeys(known.keys() - new.keys())
        self._index.put_pods({**gone, **changed})
        self._pods = new

    def _put_nodes(self, moment: Moment) -> None:
        nodes = {node.name: node for node in moment.nodes}
        states = node_states(nodes, moment.agents, moment.view)
        for name, state in states.items():
            old = self._nodes.get(name)
            if old is not None and _is_same(old, state):
                states[name] = old
        self._index.put_nodes(_changes(self._nodes, states))
        self._nodes = states


def _is_same(old: KnownNode, new: KnownNode) -> bool:
    """Whether nothing was replaced; equal facts are the same objects, because only changes are decoded."""
    return old.fact is new.fact and old.agent is new.agent and old.view is new.view and old.gpus is new.gpus


def _changes(old: Mapping[str, V], new: Mapping[str, V]) -> dict[str, V | None]:
    """What is not the same object any longer; None: gone."""
    gone: dict[str, V | None] = dict.fromkeys(old.keys() - new.keys())
    return gone | {name: value for name, value in new.items() if old.get(name) is not value}
