"""Disks as rows: the fullest first, those of a share once, each with when it will be full if it goes on. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from monitor.detect.lib.storage import used_ratio
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding
from monitor.facts.storage import DiskFact
from monitor.report.history import Point

WINDOW = 3600.0
FEWEST = 3  # minutes that have to be known
GROWN = 0.01  # by how much it has to have grown: values are kept in steps of half a percent
HORIZON = 7 * 86400.0  # what is further away nobody can tell
WARNING, CRITICAL = 0.8, 0.9
UNKNOWN = 2.0  # what does not answer is worse than what is full


@dataclass(frozen=True)
class DiskRow:
    """A disk, and on which nodes it is."""

    node: str
    fact: DiskFact
    share: float | None
    nodes: int = 1
    full_in: float | None = None  # seconds

    @property
    def css(self) -> str:
        """Return how alarming it looks."""
        if self.share is None:
            return "unknown"
        return "critical" if self.share >= CRITICAL else "warning" if self.share >= WARNING else "fine"


def rows(agents: Iterable[AgentFact], most: int) -> list[DiskRow]:
    """Return the fullest disks of all nodes. One that several nodes mount is one disk."""
    own: list[tuple[float, str, DiskFact]] = []
    shared: dict[str, tuple[float, str, DiskFact]] = {}
    mounted: Counter[str] = Counter()
    for agent in agents:
        snapshot = agent.snapshot
        if snapshot is None or agent.silent_since is not None:
            continue
        for disk in snapshot.disk or ():
            share = used_ratio(disk)
            entry = (UNKNOWN if share is None else share, agent.node or snapshot.node, disk)
            if "nas" in disk.roles:
                shared[disk.device] = entry
                mounted[disk.device] += 1
            else:
                own.append(entry)
    fullest = heapq.nlargest(most, (*own, *shared.values()), key=lambda entry: entry[0])
    return [
        DiskRow(node, disk, None if share == UNKNOWN else share, mounted[disk.device] or 1)
        for share, node, disk in fullest
    ]


def told_seconds(findings: Iterable[Finding] | None) -> dict[tuple[str, str], float]:
    """Return in how many seconds which disk is full, as far as that was found to be a trend."""
    told = {}
    for finding in findings or ():
        seconds = finding.headline.values.get("seconds")
        if finding.rule == "disk-filling" and isinstance(seconds, (int, float)):
            told[finding.labels.get("node", ""), finding.labels.get("mount", "")] = float(seconds)
    return told


def full_in(points: Sequence[Point], now: float) -> float | None:
    """Given how full a disk was, return in how many seconds it will be, at the last hour's pace; None: not soon."""
    known = [(at, value) for at, value in points if value is not None and at >= now - WINDOW]
    # What was emptied begins anew: only what came after the last fall says where it goes.
    start = next((n for n in range(len(known) - 1, 0, -1) if known[n][1] < known[n - 1][1] - GROWN), 0)
    known = known[start:]
    if len(known) < FEWEST or known[-1][1] - known[0][1] < GROWN:
        return None
    (began, low), (at, high) = known[0], known[-1]
    seconds = (1.0 - high) * (at - began) / (high - low)
    return seconds if seconds <= HORIZON else None


def with_times(
    found: Sequence[DiskRow], told: Mapping[tuple[str, str], float], trends: Mapping[str, Sequence[Point]], now: float
) -> list[DiskRow]:
    """Given disks, return them with when they will be full; `trends` is of the fullest disk of each node."""
    fullest: set[str] = set()
    made = []
    for row in found:
        seconds = told.get((row.node, row.fact.mount))
        if "nas" not in row.fact.roles and row.node not in fullest:
            fullest.add(row.node)
            if seconds is None:
                seconds = full_in(trends.get(row.node, ()), now)
        made.append(DiskRow(row.node, row.fact, row.share, row.nodes, seconds))
    return made
