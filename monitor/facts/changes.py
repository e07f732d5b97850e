"""What has changed between two evaluations of the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.node import PARTS

# Parts of a node besides those of its snapshot. Its pods include the finished ones, their events and their owners.
AGENT, KUBERNETES_NODE, GPUS, PODS = "agent", "node", "gpus", "pods"
ALL_PARTS = frozenset((*PARTS, AGENT, KUBERNETES_NODE, GPUS, PODS))
# Kinds of facts that belong to no single node or pod; "pods", "nodes" and "events" stand for any of them.
KINDS = (
    "pods",
    "nodes",
    "events",
    "quotas",
    "queues",
    "pod_groups",
    "workloads",
    "devices",
    "services",
    "deletions",
    "sources",
)
SHARED_KINDS = ("quotas", "queues", "pod_groups", "workloads")


@dataclass(frozen=True)
class Changes:
    """Changed parts by node, changed pods by uid (including their events and owners), and changed kinds of facts.

    `complete`: everything counts as changed, as at the first evaluation.
    """

    nodes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    pods: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    complete: bool = False


def all_changes(facts: ClusterFacts) -> Changes:
    """Changes that cover everything there is."""
    names = facts.node_by_name.keys() | facts.agent_of_node.keys() | facts.view_of_node.keys()
    return Changes(dict.fromkeys(names, ALL_PARTS), frozenset(facts.pod_by_uid), frozenset(KINDS), complete=True)


class ChangeLog:
    """Collects changes until they are taken."""

    def __init__(self) -> None:
        self.nodes: defaultdict[str, set[str]] = defaultdict(set)
        self.pods: set[str] = set()
        self.views: set[str] = set()  # pods with a change of their usage only
        self.complete = True

    def take(self) -> Changes:
        """Changes since the last call."""
        changes = Changes(
            {name: frozenset(parts) for name, parts in self.nodes.items()}, frozenset(self.pods), complete=self.complete
        )
        self.nodes, self.pods, self.views, self.complete = defaultdict(set), set(), set(), False
        return changes
