"""Keeps the facts of the rules up to date with the live cluster, at the cost of what has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from monitor.facts.changes import KUBERNETES_NODE, PODS, Changes, all_changes
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import FactsIndex, KnownNode, KnownPod, SmallFacts
from monitor.facts.kube import EventFact


@dataclass(frozen=True)
class FactsUpdate:
    """New states of what has changed (None: gone), and the kinds of facts with few objects as a whole.

    With `changes.complete` it holds everything there is.
    """

    changes: Changes
    nodes: Mapping[str, KnownNode | None]
    pods: Mapping[str, KnownPod | None]
    events: Mapping[str, EventFact | None]
    small: SmallFacts


class FactsFeed:
    """Facts that follow updates. Only the thread that calls `update` may read them."""

    def __init__(self, take_update: Callable[[], FactsUpdate], resource: str) -> None:
        self._take_update = take_update
        self._resource = resource
        self._index = FactsIndex(resource)

    @property
    def facts(self) -> ClusterFacts:
        """The facts of the last update."""
        return self._index.facts

    def update(self) -> Changes:
        """Bring the facts up to date, and return what has changed."""
        update = self._take_update()
        if update.changes.complete:
            self._index = FactsIndex(self._resource)
        index, changes = self._index, update.changes
        nodes = index.nodes_of(changes.pods)
        pending = not index.facts.pending_by_uid.keys().isdisjoint(changes.pods)
        index.put_pods(update.pods)
        index.put_nodes(update.nodes)
        about = index.put_events(update.events)
        kinds = index.put_small(update.small)
        if changes.complete:
            return all_changes(index.facts)
        pods = changes.pods | about
        nodes |= index.nodes_of(pods)
        parts = {**changes.nodes, **{name: changes.nodes.get(name, frozenset()) | {PODS} for name in nodes}}
        kinds |= {"pods"} if changes.pods else set()
        pending = pending or not index.facts.pending_by_uid.keys().isdisjoint(changes.pods)
        kinds |= {"pending_pods"} if pending else set()
        kinds |= {"events"} if update.events else set()
        kinds |= {"nodes"} if any(KUBERNETES_NODE in changed for changed in changes.nodes.values()) else set()
        return Changes(parts, pods, frozenset(kinds))
