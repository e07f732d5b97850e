"""What the rules about storage have in common: which nodes are report, their disks, who owns what is on them. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from monitor.detect.base import RuleContext, cached_per_evaluation
from monitor.detect.visibility import label_value
from monitor.facts.cluster_facts import World
from monitor.facts.findings import Scope
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact
from monitor.facts.workload import ContainerFact

STALE_AFTER_SECONDS = 120.0  # an answer older than this is no answer
_SKEW_FROM = 2.0  # less is the way that the answer took
MAX_REMEMBERED_NODES = 20  # of those that have something in common: enough to know whether any of them still speaks


@dataclass(frozen=True)
class NodeReport:
    """A node whose agent speaks now. `skew` is what to add to its clock to get ours."""

    node: str
    snapshot: NodeSnapshot
    skew: float = 0.0

    @cached_property
    def containers(self) -> dict[str, ContainerFact]:
        """The node's containers by id."""
        return {container.id: container for container in self.snapshot.containers or ()}

    def section(self, name: str) -> tuple[Any, ...] | None:
        """Given a part of the snapshot, return it: () where there is nothing to be read, None if it is not known."""
        found: tuple[Any, ...] | None = getattr(self.snapshot, name)
        if found is None and any(c.name == name and c.outcome == "absent" for c in self.snapshot.collectors):
            return ()
        return found


@dataclass(frozen=True)
class NodeReports:
    """All nodes that are report, and those that should be and are not."""

    nodes: dict[str, NodeReport]
    silent: frozenset[str]

    def blind_scopes(self, *parts: str) -> tuple[Scope, ...]:
        """Given the parts that a rule needs, return of which nodes it cannot know."""
        if not self.nodes and not self.silent:
            return (Scope(labels={}),)
        lacking = {name for name, report in self.nodes.items() if any(report.section(part) is None for part in parts)}
        return tuple(Scope(labels={"node": label_value(node)}) for node in sorted(self.silent | lacking))

    def any_hidden(self, nodes: Iterable[str], *parts: str) -> bool:
        """Given nodes that had something, return whether one may still have it and no longer tells."""
        return any(
            node in self.silent
            or (node in self.nodes and any(self.nodes[node].section(part) is None for part in parts))
            for node in nodes
        )


@cached_per_evaluation
def node_reports(context: RuleContext) -> NodeReports:
    """Given the context, return who speaks. A node of Kubernetes without an agent is silent, not well."""
    nodes, silent = {}, set(context.facts.node_by_name)
    for node, agent in context.facts.agent_of_node.items():
        received, snapshot = agent.received_at, agent.snapshot
        fresh = received is not None and context.now - received <= STALE_AFTER_SECONDS and agent.silent_since is None
        if snapshot is None or received is None or not fresh:
            silent.add(node)
            continue
        skew = received - snapshot.at
        nodes[node] = NodeReport(node, snapshot, skew if abs(skew) > _SKEW_FROM else 0.0)
    return NodeReports(nodes, frozenset(silent - nodes.keys()))


@dataclass(frozen=True)
class ClusterDisk:
    """A disk as it is known now. A NAS is one disk, whichever `nodes` have it; `report` is where it was read."""

    key: str
    labels: dict[str, str]
    fact: DiskFact
    report: NodeReport
    nodes: tuple[str, ...]

    @property
    def shared(self) -> bool:
        """Whether it is not one node's own."""
        return "nas" in self.fact.roles

    @property
    def location(self) -> str:
        """Where it is, in a few words."""
        return self.fact.device if self.shared else self.report.node


@dataclass(frozen=True)
class KnownDisks:
    """The disks whose figures are known, and of which disks they are not."""

    disks: tuple[ClusterDisk, ...]
    blind: tuple[Scope, ...]


@cached_per_evaluation
def known_disks(context: RuleContext) -> KnownDisks:
    """Given the context, return all disks of nodes that speak, each once."""
    known: list[ClusterDisk] = []
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
                known.append(
                    ClusterDisk(f"{report.node} {fact.mount} {fact.device}", labels, fact, report, (report.node,))
                )
    for key, seen in shared.items():
        one = _shared_disk(key, seen)
        if one.fact.used_bytes is None:
            blind.append(Scope(labels=one.labels))
        else:
            known.append(one)
    return KnownDisks(tuple(known), tuple(blind))


def _identity(fact: DiskFact) -> str:
    """What is equal for all mounts of one network filesystem. A source that names no server tells little by itself."""
    device = fact.device
    names_server = ":" in device or device.startswith("//")
    if names_server and not device.startswith(("127.", "localhost:")):
        return device
    return f"{device} {fact.fstype} {fact.mount} {fact.size_bytes}"


def _shared_disk(key: str, seen: list[tuple[NodeReport, DiskFact]]) -> ClusterDisk:
    """Several nodes' words on one NAS: the fullest of those who know, at the mount point that most of them use."""
    report, fact = max(seen, key=lambda each: (each[1].used_bytes or -1, each[0].node))
    points = Counter(each.mount for _, each in seen)
    mount = min(points, key=lambda point: (-points[point], point))
    labels = {"mount": label_value(mount), "service": label_value(fact.device)}
    return ClusterDisk(key, labels, fact, report, tuple(sorted(each.node for each, _ in seen)))


def used_ratio(fact: DiskFact) -> float | None:
    """Given a disk, return how full it is, as df says it: what is kept for root counts as full."""
    if fact.used_bytes is None or fact.available_bytes is None or fact.used_bytes + fact.available_bytes <= 0:
        return None
    return fact.used_bytes / (fact.used_bytes + fact.available_bytes)


def disk_containing(path: str, facts: Iterable[DiskFact]) -> DiskFact | None:
    """Given a path of a node and its disks, return the disk that it is on."""
    holding = [fact for fact in facts if path == fact.mount or path.startswith(fact.mount.rstrip("/") + "/")]
    return max(holding, key=lambda fact: len(fact.mount), default=None)


def container_owner(container: ContainerFact, facts: World) -> tuple[str, str]:
    """Given a container, return its pod (else its own name) and whom to ask (user, else namespace, else nobody)."""
    name = f"{container.namespace}/{container.pod_name}" if container.pod_name else container.name or container.id[:12]
    identity = facts.identities.get(container.pod_uid or "")
    user = (identity.user if identity else None) or container.user or container.namespace or "-"
    return label_value(name), label_value(user)


def memory_sections(memory: Any, *parts: str) -> list[dict[str, Any]]:
    """Given what was remembered, return its parts; those that are missing or of another shape are empty."""
    whole = memory if isinstance(memory, dict) else {}
    return [dict(part) if isinstance(part := whole.get(name), dict) else {} for name in parts]
