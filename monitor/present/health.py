"""Health of the cluster in a few figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from monitor.facts.cluster import ClusterView, GpuState, PodView, SourceView
from monitor.facts.findings import Severity
from monitor.facts.text import Text, Value
from monitor.present.connect import connect_hints, is_absent
from monitor.present.gpu_totals import GpuTotals
from monitor.present.problems import ProblemRow
from monitor.present.shares import wanted

EXPECTED_STATES = (GpuState.BUSY, GpuState.FREE, GpuState.UNKNOWN)


@dataclass(frozen=True)
class ClusterHealth:
    """The figures of the overview. `level` is fine, warning, critical, unconnected or unknown.

    `hints` say what to connect while there is nothing to monitor.
    """

    level: str
    hints: tuple[Text, ...]
    blind_spots: tuple[SourceView, ...]  # failing sources, without those that the hints are about
    counts: dict[str, int]  # problems by severity
    nodes: int
    nodes_down: int
    gpus: int
    busy: int
    free: int
    schedulable: int  # free GPUs that the scheduler can still assign: not those of a node that is down or cordoned
    abnormal: int
    utilization_ratio: float | None
    waiting: int
    waiting_gpus: Value  # in the format `gpus`


def cluster_health(
    view: ClusterView, totals: GpuTotals, waiting: Sequence[PodView], problems: Sequence[ProblemRow] | None
) -> ClusterHealth:
    """Health of a cluster with these totals over its GPUs and these waiting pods.

    `problems` is None before the first evaluation.
    """
    states = totals.states
    counts = Counter(problem.worst.severity for problem in problems or () if not problem.muted)
    hints = connect_hints(view.sources, has_gpus=bool(view.gpus))
    return ClusterHealth(
        level=_level(view, counts, evaluated=problems is not None, connected=not hints),
        hints=hints,
        blind_spots=tuple(source for source in view.sources if not source.ok and not (hints and is_absent(source))),
        counts={severity.value: counts[severity] for severity in Severity},
        nodes=len(view.nodes),
        nodes_down=len([node for node in view.nodes if node.in_kubernetes and not node.ready]),
        gpus=len(view.gpus),
        busy=states[GpuState.BUSY] + states[GpuState.IDLE_HELD],
        free=states[GpuState.FREE],
        schedulable=sum(free.free for free in view.free),
        abnormal=sum(count for state, count in states.items() if state not in EXPECTED_STATES),
        utilization_ratio=totals.utilization_ratio,
        waiting=len(waiting),
        waiting_gpus=wanted(waiting),
    )


def _level(view: ClusterView, counts: Counter[Severity], *, evaluated: bool, connected: bool) -> str:
    if counts[Severity.CRITICAL]:
        return "critical"
    # A machine without a cluster lacks nothing.
    if counts[Severity.WARNING] or any(not source.ok and not is_absent(source) for source in view.sources):
        return "warning"
    if not connected:
        return "unconnected"
    return "fine" if evaluated else "unknown"
