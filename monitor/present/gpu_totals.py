"""Totals over all GPUs, counted again only on nodes whose GPUs have changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from monitor.base.sequences import changed_positions
from monitor.facts.cluster import ClusterView, GpuState, GpuView


class GpuTotals(NamedTuple):
    """GPUs by state, and the mean utilization of those where it is known."""

    states: Counter[GpuState]
    utilization_ratio: float | None


@dataclass(frozen=True)
class _Counted:
    """The GPUs of each node, with their states in order, and the sum and number of the known utilizations."""

    gpus: tuple[tuple[GpuView, ...], ...] = ()
    states: list[tuple[GpuState, ...]] = field(default_factory=list)
    utilization: list[float] = field(default_factory=list)
    known: list[int] = field(default_factory=list)
    total: Counter[GpuState] = field(default_factory=Counter)  # by state

    def of(self, gpus: tuple[tuple[GpuView, ...], ...]) -> _Counted:
        """The same for these GPUs."""
        changed = changed_positions(self.gpus, gpus)
        if len(self.gpus) == len(gpus):
            counted = _Counted(gpus, self.states[:], self.utilization[:], self.known[:], self.total.copy())
        else:
            count = len(gpus)
            counted = _Counted(gpus, [()] * count, [0.0] * count, [0] * count)
        for position in changed:
            counted.count(position)
        return counted

    def count(self, position: int) -> None:
        """Count the GPUs of one node again."""
        gpus, before = self.gpus[position], self.states[position]
        states = tuple([gpu.state for gpu in gpus])
        if states != before:
            self.total.subtract(before)
            self.total.update(states)
            self.states[position] = states
        known = [gpu.utilization_ratio for gpu in gpus if gpu.utilization_ratio is not None]
        self.utilization[position], self.known[position] = sum(known), len(known)


class GpuCounter:
    """Counts the GPUs of successive views. Any thread may use it."""

    def __init__(self) -> None:
        self._counted = _Counted()

    def totals(self, view: ClusterView) -> GpuTotals:
        """Totals over the GPUs of a view."""
        counted = self._counted = self._counted.of(tuple(view.gpus_by_node.values()))
        known = sum(counted.known)
        return GpuTotals(+counted.total, sum(counted.utilization) / known if known else None)
