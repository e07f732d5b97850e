"""Rows of the table of nodes, and the orders in which it can be sorted. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from monitor.base.text import NaturalKey, natural_key
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuView, NodeView
from monitor.facts.node import NodeSnapshot
from monitor.present.disks import DiskRow, node_disks
from monitor.present.rows import ClusterIndex, mean_utilization, node_problems


@dataclass(frozen=True)
class NodeRow:
    """A node with its figures; None where nothing is known, as while its agent is silent."""

    node: NodeView
    problems: tuple[str, ...]
    gpus: Sequence[GpuView]
    utilization_ratio: float | None = None
    load_ratio: float | None = None  # of the CPUs
    memory_ratio: float | None = None
    temperature_celsius: float | None = None  # of the hottest GPU
    disk: DiskRow | None = None  # the fullest

    @property
    def total(self) -> int | None:
        """Number of GPUs: those that Kubernetes can allocate, else those of the driver."""
        return self.node.allocatable if self.node.allocatable is not None else self.node.cards


# Figures by which rows can be sorted.
ORDERS: Mapping[str, Callable[[NodeRow], float | None]] = {
    "state": lambda row: len(row.problems),
    "free": lambda row: row.node.free,
    "utilization": lambda row: row.utilization_ratio,
    "load": lambda row: row.load_ratio,
    "memory": lambda row: row.memory_ratio,
    "temperature": lambda row: row.temperature_celsius,
    "disk": lambda row: row.disk.used_ratio if row.disk is not None else None,
}
NAME = "name"


def node_rows(index: ClusterIndex, agents: Mapping[str, AgentFact], lang: str) -> list[NodeRow]:
    """All nodes with their figures."""
    return [_row(node, index.gpus_by_node.get(node.name, ()), agents.get(node.name), lang) for node in index.view.nodes]


def in_order(rows: Sequence[NodeRow], order: str) -> list[NodeRow]:
    """Rows by a figure, the highest first (`-` before it: the lowest), or by name.

    By default those with problems come first. What is not known comes last, what is equal in the order of names.
    """
    by_name = sorted(rows, key=_name_key, reverse=order == f"-{NAME}")
    ascending, figure = order.startswith("-"), order.removeprefix("-")
    if figure == NAME:
        return by_name
    value = ORDERS.get(figure, ORDERS["state"])
    known = [row for row in by_name if value(row) is not None]
    unknown = [row for row in by_name if value(row) is None]
    return sorted(known, key=lambda row: value(row) or 0.0, reverse=not ascending) + unknown


def _name_key(row: NodeRow) -> NaturalKey:
    return natural_key(row.node.name)


def _row(node: NodeView, gpus: Sequence[GpuView], agent: AgentFact | None, lang: str) -> NodeRow:
    problems = tuple(node_problems(node, lang))
    snapshot = agent.snapshot if agent is not None and node.silent_since is None else None
    if snapshot is None:
        return NodeRow(node, problems, gpus, mean_utilization(gpus))
    load, memory = _host(snapshot)
    return NodeRow(
        node, problems, gpus, mean_utilization(gpus), load, memory, _temperature(snapshot),
        next(iter(node_disks(agent)), None),
    )  # fmt: skip


def _host(snapshot: NodeSnapshot) -> tuple[float | None, float | None]:
    """Load of the CPUs, and share of the memory in use."""
    host = snapshot.host
    if host is None:
        return None, None
    load = host.load1 / host.cpus if host.load1 is not None and host.cpus > 0 else None
    total = host.memory_total_bytes
    return load, (total - host.memory_available_bytes) / total if total > 0 else None


def _temperature(snapshot: NodeSnapshot) -> float | None:
    gpus = snapshot.gpu.gpus if snapshot.gpu is not None else ()
    return max((gpu.temperature_celsius for gpu in gpus if gpu.temperature_celsius is not None), default=None)
