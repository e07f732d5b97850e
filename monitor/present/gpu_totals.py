"""Totals over all GPUs, counted again only on nodes whose GPUs have changed."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from monitor.facts.cluster import ClusterView, GpuState, GpuView


class GpuTotals(NamedTuple):
    """GPUs by state, and the mean utilization of those where it is known."""

    states: Counter[GpuState]
    utilization_ratio: float | None


class _NodeTotals(NamedTuple):
    """The GPUs of a node, their states in order, and the sum and number of the known utilizations."""

    gpus: tuple[GpuView, ...]
    states: tuple[GpuState, ...]
    utilization: float
    known: int


class GpuCounter:
    """Counts the GPUs of successive views. Any thread may use it."""

    def __init__(self) -> None:
        self._nodes: dict[str, _NodeTotals] = {}

    def totals(self, view: ClusterView) -> GpuTotals:
        """Totals over the GPUs of a view."""
        before = self._nodes
        nodes = {name: _node_totals(before.get(name), gpus) for name, gpus in view.gpus_by_node.items()}
        self._nodes = nodes
        states: Counter[GpuState] = Counter()
        for alike, count in Counter([node.states for node in nodes.values()]).items():
            for state in alike:
                states[state] += count
        known = sum([node.known for node in nodes.values()])
        return GpuTotals(states, sum([node.utilization for node in nodes.values()]) / known if known else None)


def _node_totals(before: _NodeTotals | None, gpus: tuple[GpuView, ...]) -> _NodeTotals:
    if before is not None and before.gpus is gpus:
        return before
    known = [gpu.utilization_ratio for gpu in gpus if gpu.utilization_ratio is not None]
    return _NodeTotals(gpus, tuple([gpu.state for gpu in gpus]), sum(known), len(known))
