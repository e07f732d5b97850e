"""What has changed between two evaluations of the rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, eq

from monitor.facts.cluster import GpuView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.node import PARTS

# Parts of a node besides those of its snapshot. Its pods include the finished ones, their events and their owners. The
# view of its GPUs changes with every poll; their states are the same without the figures of the driver.
AGENT, KUBERNETES_NODE, GPUS, GPU_STATES, PODS = "agent", "node", "gpus", "gpu_states", "pods"
ALL_PARTS = frozenset((*PARTS, AGENT, KUBERNETES_NODE, GPUS, GPU_STATES, PODS))
_GPU_FIGURES = ("utilization_ratio", "memory_used_bytes", "temperature_celsius", "power_watts", "power_limit_watts")
_state_of = attrgetter(*(name for name in GpuView.__struct_fields__ if name not in _GPU_FIGURES))
# Kinds of facts that belong to no single node or pod. "pods", "nodes" and "events" stand for any of them, and
# "pending_pods" for those that are or were without a node.
KINDS = (
    "pods", "pending_pods", "nodes", "events", "quotas", "queues", "pod_groups", "workloads", "devices", "services",
    "deletions", "sources",
)  # fmt: skip
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


def changed_gpu_parts(before: Sequence[GpuView], after: Sequence[GpuView]) -> frozenset[str]:
    """Which of the parts GPUS and GPU_STATES differ."""
    if before == after:
        return frozenset()
    same_states = len(before) == len(after) and all(map(eq, map(_state_of, before), map(_state_of, after)))
    return frozenset((GPUS,)) if same_states else frozenset((GPUS, GPU_STATES))


class ChangeLog:
    """Collects changes until they are taken."""

    def __init__(self) -> None:
        self.nodes: defaultdict[str, set[str]] = defaultdict(set)
        self.pods: set[str] = set()
        self.complete = True

    def take(self) -> Changes:
        """Changes since the last call."""
        changes = Changes(
            {name: frozenset(parts) for name, parts in self.nodes.items()}, frozenset(self.pods), complete=self.complete
        )
        self.nodes, self.pods, self.complete = defaultdict(set), set(), False
        return changes
