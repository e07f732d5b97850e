"""Shared by the storage rules: how full disks are, what is on them, and who owns it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from monitor.detect.base import RuleContext, cached_per_evaluation
from monitor.detect.labels import label_value
from monitor.detect.subjects import NodeReport
from monitor.detect.visibility import clock_skew
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Scope
from monitor.facts.storage import DiskFact
from monitor.facts.workload import ContainerFact

T = TypeVar("T")
STALE_AFTER_SECONDS = 120.0  # older reports are ignored


@dataclass(frozen=True)
class NodeReports:
    """Nodes that report, and those that should but do not."""

    nodes: dict[str, NodeReport]
    silent: frozenset[str]

    def blind_scopes(self, *parts: str) -> tuple[Scope, ...]:
        """Nodes for which a rule lacks one of these sections."""
        if not self.nodes and not self.silent:
            return (Scope(labels={}),)
        lacking = {name for name, report in self.nodes.items() if any(report.section(part) is None for part in parts)}
        return tuple(Scope(labels={"node": label_value(node)}) for node in sorted(self.silent | lacking))


@cached_per_evaluation
def node_reports(context: RuleContext) -> NodeReports:
    """Reports of all nodes. A Kubernetes node without an agent is silent, not healthy."""
    nodes, silent = {}, set(context.facts.node_by_name)
    for node, agent in context.facts.agent_of_node.items():
        received, snapshot = agent.received_at, agent.snapshot
        fresh = received is not None and context.now - received <= STALE_AFTER_SECONDS and agent.silent_since is None
        if snapshot is None or received is None or not fresh:
            silent.add(node)
            continue
        nodes[node] = NodeReport(node, snapshot, clock_skew(agent))
    return NodeReports(nodes, frozenset(silent - nodes.keys()))


def used_ratio(fact: DiskFact) -> float | None:
    """Fullness as df shows it: blocks reserved for root count as used."""
    if fact.used_bytes is None or fact.available_bytes is None or fact.used_bytes + fact.available_bytes <= 0:
        return None
    return fact.used_bytes / (fact.used_bytes + fact.available_bytes)


def disk_containing(path: str, facts: Iterable[DiskFact]) -> DiskFact | None:
    """The disk that contains a path."""
    holding = [fact for fact in facts if path == fact.mount or path.startswith(fact.mount.rstrip("/") + "/")]
    return max(holding, key=lambda fact: len(fact.mount), default=None)


def is_below(path: str, disk: DiskFact, facts: Iterable[DiskFact]) -> bool:
    """Whether a path is on this one of the disks."""
    holding = disk_containing(path, facts)
    return holding is not None and holding.mount == disk.mount


def container_owner(container: ContainerFact, facts: ClusterFacts) -> tuple[str, str]:
    """Pod of a container (or else its own name) and its user (or else namespace, or else "-")."""
    name = f"{container.namespace}/{container.pod_name}" if container.pod_name else container.name or container.id[:12]
    user = facts.container_user(container) or container.namespace or "-"
    return label_value(name), label_value(user)


def recalled(memory: Any, kind: type[T]) -> T | None:
    """What a rule remembers; None if it remembers nothing, or something else from an older version."""
    try:
        return msgspec.convert(memory, kind)
    except msgspec.ValidationError:
        return None
