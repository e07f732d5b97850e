"""Shared by the storage rules: which nodes report, their disks, and who owns what is on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from monitor.detect.base import RuleContext, cached_per_evaluation
from monitor.detect.labels import label_value
from monitor.detect.subjects import ClusterDisk, NodeReport, nas_identity, shared_disk
from monitor.detect.visibility import clock_skew
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Scope
from monitor.facts.storage import DiskFact
from monitor.facts.workload import ContainerFact

T = TypeVar("T")
STALE_AFTER_SECONDS = 120.0  # older reports are ignored
MAX_REMEMBERED_NODES = 20  # per subject: enough to tell whether any of them still reports


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

    def any_hidden(self, nodes: Iterable[str], *parts: str) -> bool:
        """Whether one of the nodes may still be affected but no longer reports these sections."""
        return any(
            node in self.silent
            or (node in self.nodes and any(self.nodes[node].section(part) is None for part in parts))
            for node in nodes
        )


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


@dataclass(frozen=True)
class KnownDisks:
    """Disks whose figures are known, and the scopes of those whose are not."""

    disks: tuple[ClusterDisk, ...]
    blind: tuple[Scope, ...]


@cached_per_evaluation
def known_disks(context: RuleContext) -> KnownDisks:
    """Disks of all reporting nodes, each once."""
    disks: list[ClusterDisk] = []
    blind: list[Scope] = []
    shared: defaultdict[str, list[tuple[NodeReport, DiskFact]]] = defaultdict(list)
    for report in node_reports(context).nodes.values():
        for fact in report.section("disk") or ():
            if "nas" in fact.roles:
                shared[nas_identity(fact)].append((report, fact))
                continue
            labels = {"node": label_value(report.node), "mount": label_value(fact.mount)}
            if fact.used_bytes is None:
                blind.append(Scope(labels=labels))
            else:
                disks.append(
                    ClusterDisk(f"{report.node} {fact.mount} {fact.device}", labels, fact, report, (report.node,))
                )
    for key, mounts in shared.items():
        disk = shared_disk(key, mounts)
        if disk.fact.used_bytes is None:
            blind.append(Scope(labels=disk.labels))
        else:
            disks.append(disk)
    return KnownDisks(tuple(disks), tuple(blind))


def used_ratio(fact: DiskFact) -> float | None:
    """Fullness as df shows it: blocks reserved for root count as used."""
    if fact.used_bytes is None or fact.available_bytes is None or fact.used_bytes + fact.available_bytes <= 0:
        return None
    return fact.used_bytes / (fact.used_bytes + fact.available_bytes)


def disk_containing(path: str, facts: Iterable[DiskFact]) -> DiskFact | None:
    """The disk that contains a path."""
    holding = [fact for fact in facts if path == fact.mount or path.startswith(fact.mount.rstrip("/") + "/")]
    return max(holding, key=lambda fact: len(fact.mount), default=None)


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


def memory_sections(memory: Any, *parts: str) -> list[dict[str, Any]]:
    """Sections of the memory; missing or malformed ones are empty."""
    sections = memory if isinstance(memory, dict) else {}
    return [dict(part) if isinstance(part := sections.get(name), dict) else {} for name in parts]
