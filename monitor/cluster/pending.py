"""Changes that watches and polls report, collected until the next update of the view."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from monitor.cluster.view_inputs import ViewChanges
from monitor.facts.agents import AgentFact
from monitor.facts.kube import EventFact, NamespaceFact, NodeFact, PodFact
from monitor.facts.queues import WorkloadFact
from monitor.kube.store import ObjectChange

MAX_GONE_PODS = 20_000  # between two evaluations
OWNER_RESOURCES = ("replicasets.apps", "jobs.batch", "namespaces")
WORKLOADS = "workloads.kueue.x-k8s.io"


class PendingChanges:
    """Filled by any thread. `node_named` returns the current node of a name, `keep_gone` keeps pods that are gone."""

    def __init__(self, node_named: Callable[[str], NodeFact | None], *, keep_gone: bool = False) -> None:
        self._node_named = node_named
        self._keep_gone = keep_gone
        self._gone: dict[str, PodFact] = {}
        self._lock = threading.Lock()  # never held while a view is built
        # Changed owners: ReplicaSets and Jobs by uid; by name, namespaces that have changed or in which Workloads have.
        self._owners: set[str] = set()
        self._pods: dict[str, PodFact | None] = {}
        self._nodes: dict[str, NodeFact | None] = {}
        self._agents: dict[str, AgentFact] = {}
        self._events: dict[str, EventFact | None] = {}

    @property
    def urgent(self) -> bool:
        """Whether pods or nodes have changed."""
        return bool(self._pods or self._nodes)

    def note(self, resource: str, changes: Sequence[ObjectChange[Any]]) -> None:
        """Note changed objects. Other resources than these are read when they are needed."""
        with self._lock:
            for change in changes:
                changed: Any = change.new or change.old
                if resource == "pods":
                    self._pods[changed.uid] = change.new
                    if change.new is None and self._keep_gone and len(self._gone) < MAX_GONE_PODS:
                        self._gone[changed.uid] = changed
                elif resource == "nodes":
                    # DELETED for the old node may arrive after ADDED for its replacement.
                    self._nodes[changed.name] = change.new or self._node_named(changed.name)
                elif resource == "events":
                    self._events[changed.uid] = change.new
                elif resource in OWNER_RESOURCES and _has_new_owner(change):
                    self._owners.add(changed.name if isinstance(changed, NamespaceFact) else changed.uid)
                elif resource == WORKLOADS and _has_new_queue(change):
                    self._owners.add(changed.namespace)

    def note_agent(self, fact: AgentFact) -> None:
        """Note the answer of an agent."""
        with self._lock:
            self._agents[fact.target] = fact

    def note_new_agent(self, fact: AgentFact) -> None:
        """Note an agent that has yet to answer, unless it has answered meanwhile."""
        with self._lock:
            self._agents.setdefault(fact.target, fact)

    def take(self) -> ViewChanges:
        """Pods, nodes and agents that have changed since the last call."""
        with self._lock:
            changes = ViewChanges(self._pods, self._nodes, tuple(self._agents.values()))
            self._pods, self._nodes, self._agents = {}, {}, {}
            return changes

    def take_gone(self) -> dict[str, PodFact]:
        """Last versions of the pods that have gone since the last call, by uid."""
        with self._lock:
            gone, self._gone = self._gone, {}
            return gone

    def take_owners(self) -> set[str]:
        """Owners that have changed since the last call."""
        with self._lock:
            owners, self._owners = self._owners, set()
            return owners

    def take_events(self) -> dict[str, EventFact | None]:
        """Events that have changed since the last call, by uid; None: gone."""
        with self._lock:
            events, self._events = self._events, {}
            return events


def _has_new_owner(change: ObjectChange[Any]) -> bool:
    """Whether identities may change. Most changes, such as the progress of a Job, do not affect them."""
    return change.old is None or change.new is None or change.old.owner != change.new.owner


def _has_new_queue(change: ObjectChange[WorkloadFact]) -> bool:
    """Whether pods may be in another queue. That of a Workload that is gone stays until its pods are."""
    old, new = change.old, change.new
    return new is not None and (old is None or (old.queue, old.owner) != (new.queue, new.owner))
