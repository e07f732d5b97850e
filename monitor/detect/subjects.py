"""Subjects of rules: the part of the facts that one evaluation of a rule is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from monitor.detect.labels import label_value
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuView, NodeView
from monitor.facts.gpu import GpuFact
from monitor.facts.kube import NodeFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact, ImageFact
from monitor.facts.workload import ContainerFact


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
class NodeSubject:
    """A node as Kubernetes, the agent and the view know it. None: unknown there."""

    name: str
    fact: NodeFact | None = None
    agent: AgentFact | None = None
    view: NodeView | None = None
    current: NodeReport | None = None

    @property
    def report(self) -> NodeReport:
        """Its current snapshot. A rule that needs parts of it is evaluated only while there is one."""
        if self.current is None:
            raise LookupError(f"node {self.name} does not report")
        return self.current


@dataclass(frozen=True)
class GpuSubject:
    """A GPU: its state in the view, and the figures of the driver if the driver lists it."""

    view: GpuView
    node: NodeSubject
    fact: GpuFact | None = None


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
class ImageCopies:
    """An image, the size of its largest copy, and the nodes that have it."""

    id: str
    size_bytes: int
    nodes: Set[str]
    node: Callable[[str], NodeSubject]

    @cached_property
    def copies(self) -> list[tuple[NodeReport, ImageFact]]:
        """Each copy and the report of its node, by node."""
        reports = [report for name in sorted(self.nodes) if (report := self.node(name).current) is not None]
        caches = [(report, cache) for report in reports for cache in report.snapshot.images or ()]
        return [(report, image) for report, cache in caches for image in cache.images if image.id == self.id]


@dataclass(frozen=True)
class JobGpus:
    """GPUs that the live pods of a job hold; a pod without a job is its own."""

    namespace: str | None
    job: str | None
    gpus: tuple[GpuView, ...]


def nas_identity(fact: DiskFact) -> str:
    """Equal for all mounts of one network filesystem; a device that names no server is not enough."""
    device = fact.device
    names_server = ":" in device or device.startswith("//")
    if names_server and not device.startswith(("127.", "localhost:")):
        return device
    return f"{device} {fact.fstype} {fact.mount} {fact.size_bytes}"


def shared_disk(key: str, mounts: list[tuple[NodeReport, DiskFact]]) -> ClusterDisk:
    """One NAS as several nodes report it: the highest usage, at the most common mount point."""
    report, fact = max(mounts, key=lambda item: (item[1].used_bytes or -1, item[0].node))
    points = Counter(fact.mount for _, fact in mounts)
    mount = min(points, key=lambda point: (-points[point], point))
    labels = {"mount": label_value(mount), "service": label_value(fact.device)}
    return ClusterDisk(key, labels, fact, report, tuple(sorted(report.node for report, _ in mounts)))
