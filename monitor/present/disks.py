"""Disk rows: the fullest first, a shared file system once, each with the estimated time until it is full."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from monitor.detect.lib.storage import used_ratio
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding
from monitor.facts.storage import DiskFact
from monitor.history.forecast import DiskForecast
from monitor.history.model import disk_name

WARNING_RATIO, CRITICAL_RATIO = 0.8, 0.9
UNRESPONSIVE_RATIO = 2.0  # sorts a disk that does not answer before full ones


@dataclass(frozen=True)
class DiskRow:
    """A disk, and the number of nodes that mount it."""

    node: str
    fact: DiskFact
    used_ratio: float | None
    nodes: int = 1
    full_in: float | None = None  # seconds

    @property
    def level(self) -> str:
        if self.used_ratio is None:
            return "unknown"
        return (
            "critical"
            if self.used_ratio >= CRITICAL_RATIO
            else "warning"
            if self.used_ratio >= WARNING_RATIO
            else "fine"
        )


def fullest_disks(agents: Iterable[AgentFact], limit: int) -> list[DiskRow]:
    """The fullest disks of all nodes. A file system that several nodes mount is one disk."""
    local: list[tuple[float, str, DiskFact]] = []
    shared: dict[str, tuple[float, str, DiskFact]] = {}
    mounts: Counter[str] = Counter()
    for agent in agents:
        snapshot = agent.snapshot
        if snapshot is None or agent.silent_since is not None:
            continue
        for disk in snapshot.disk or ():
            ratio = used_ratio(disk)
            entry = (UNRESPONSIVE_RATIO if ratio is None else ratio, agent.node or snapshot.node, disk)
            if "nas" in disk.roles:
                shared[disk.device] = entry
                mounts[disk.device] += 1
            else:
                local.append(entry)
    fullest = heapq.nlargest(limit, (*local, *shared.values()), key=lambda entry: entry[0])
    return [
        DiskRow(node, disk, None if ratio == UNRESPONSIVE_RATIO else ratio, mounts[disk.device] or 1)
        for ratio, node, disk in fullest
    ]


def node_disks(agent: AgentFact | None) -> list[DiskRow]:
    """The disks of one node, fullest first."""
    if agent is None or agent.snapshot is None or agent.node is None:
        return []
    rows = [DiskRow(agent.node, disk, used_ratio(disk)) for disk in agent.snapshot.disk or ()]
    return sorted(rows, key=lambda row: -(row.used_ratio or 0.0))


def forecasts(findings: Iterable[Finding] | None) -> dict[tuple[str, str], float]:
    """Seconds until full by node and mount, from the findings of the rule disk-filling."""
    seconds_left = {}
    for finding in findings or ():
        left = finding.headline.values.get("left")
        if finding.rule == "disk-filling" and isinstance(left, (int, float)):
            seconds_left[finding.labels.get("node", ""), finding.labels.get("mount", "")] = float(left)
    return seconds_left


def with_forecasts(
    rows: Iterable[DiskRow],
    known: Mapping[tuple[str, str], float],
    forecast: Callable[[str], DiskForecast | None],
    now: float,
) -> list[DiskRow]:
    """Rows with the time until full: of a finding, else by the history of the disk."""
    return [replace(row, full_in=_full_in(row, known, forecast, now)) for row in rows]


def _full_in(
    row: DiskRow,
    known: Mapping[tuple[str, str], float],
    forecast: Callable[[str], DiskForecast | None],
    now: float,
) -> float | None:
    seconds = known.get((row.node, row.fact.mount))
    if seconds is not None:
        return seconds
    found = forecast(disk_name(row.node, row.fact.mount))
    return None if found is None else max(0.0, found.full_at - now)
