"""Shared by the storage rules: which nodes report, their disks, and who owns what is on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from monitor.detect.base import RuleContext, cached_per_evaluation
from monitor.detect.visibility import clock_skew, label_value
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Scope
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact
from monitor.facts.workload import ContainerFact

STALE_AFTER_SECONDS = 120.0  # older reports are ignored
MAX_REMEMBERED_NODES = 20  # per subject: enough to tell whether any of them still reports


@dataclass(frozen=True)
class NodeReport:
    """Current snapshot of a node. Adding `skew` to the node's times gives ours."""

    node: str
    snapshot: NodeSnapshot
    skew: float = 0.0

    @cached_property
    def containers(self) -> dict[str, ContainerFact]:
        return {container.id: container for container in self.snapshot.containers or ()}

    def section(self, name: str) -> tuple[Any, ...] | None:
        """A section of the snapshot: () if its collector is absent, None if unknown."""
        section: tuple[Any, ...] | None = getattr(self.snapshot, name)
        if section is None and any(c.name == name and c.outcome == "absent" for c in self.snapshot.collectors):
            return ()
        return section


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
class ClusterDisk:
    """A disk with its current figures. A NAS is one disk whichever `nodes` mount it; `report` is where it was read."""

    key: str
    labels: dict[str, str]
    fact: DiskFact
    report: NodeReport
    nodes: tuple[str, ...]

    @property
    def shared(self) -> bool:
        """Whether it is a NAS."""
        return "nas" in self.fact.roles

    @property
    def location(self) -> str:
        """Its node, or the device of a NAS."""
        return self.fact.device if self.shared else self.report.node


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
                shared[_identity(fact)].append((report, fact))
                continue
            labels = {"node": label_value(report.node), "mount": label_value(fact.mount)}
            if fact.used_bytes is None:
                blind.append(Scope(labels=labels))
            else:
                disks.append(
                    ClusterDisk(f"{report.node} {fact.mount} {fact.device}", labels, fact, report, (report.node,))
                )
    for key, mounts in shared.items():
        disk = _shared_disk(key, mounts)
        if disk.fact.used_bytes is None:
            blind.append(Scope(labels=disk.labels))
        else:
            disks.append(disk)
    return KnownDisks(tuple(disks), tuple(blind))


def _identity(fact: DiskFact) -> str:
    """Equal for all mounts of one network filesystem; a device that names no server is not enough."""
    device = fact.device
    names_server = ":" in device or device.startswith("//")
    if names_server and not device.startswith(("127.", "localhost:")):
        return device
    return f"{device} {fact.fstype} {fact.mount} {fact.size_bytes}"


def _shared_disk(key: str, mounts: list[tuple[NodeReport, DiskFact]]) -> ClusterDisk:
    """One NAS as several nodes report it: the highest usage, at the most common mount point."""
    report, fact = max(mounts, key=lambda item: (item[1].used_bytes or -1, item[0].node))
    points = Counter(fact.mount for _, fact in mounts)
    mount = min(points, key=lambda point: (-points[point], point))
    labels = {"mount": label_value(mount), "service": label_value(fact.device)}
    return ClusterDisk(key, labels, fact, report, tuple(sorted(report.node for report, _ in mounts)))


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


def memory_sections(memory: Any, *parts: str) -> list[dict[str, Any]]:
    """Sections of the memory; missing or malformed ones are empty."""
    sections = memory if isinstance(memory, dict) else {}
    return [dict(part) if isinstance(part := sections.get(name), dict) else {} for name in parts]
