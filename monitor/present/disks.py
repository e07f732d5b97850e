"""Disk rows: the fullest first, a shared file system once, each with the estimated time until it is full."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from monitor.base.sequences import changed_positions
from monitor.detect.lib.storage import used_ratio
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding
from monitor.facts.storage import DiskFact
from monitor.history.forecast import DiskForecast
from monitor.history.model import disk_name

WARNING_RATIO, CRITICAL_RATIO = 0.8, 0.9
UNRESPONSIVE_RATIO = 2.0  # sorts a disk that does not answer before full ones


_RankedDisk = tuple[float, str, DiskFact]  # used ratio, node


class _AgentDisks(NamedTuple):
    """Disks of one node as its agent reported them: its own, and those that it shares with others."""

    node: str
    reported: tuple[DiskFact, ...] | None = None
    local: tuple[_RankedDisk, ...] = ()
    shared: tuple[_RankedDisk, ...] = ()


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


@dataclass(frozen=True)
class _RankedDisks:
    """The disks of each agent, and the fullest of them."""

    agents: Sequence[AgentFact] = ()
    disks: Sequence[_AgentDisks] = ()
    limit: int = 0
    fullest: Sequence[DiskRow] = ()


class DiskRanking:
    """The fullest disks of all nodes, read again only where an agent has reported others. Any thread may use it."""

    def __init__(self) -> None:
        self._ranked = _RankedDisks()

    def fullest(self, agents: Sequence[AgentFact], limit: int) -> list[DiskRow]:
        """The fullest disks. A file system that several nodes mount is one disk."""
        before = self._ranked
        same = len(before.agents) == len(agents)
        disks = [*before.disks] if same else [_AgentDisks("")] * len(agents)
        for position in changed_positions(before.agents, agents):
            disks[position] = _agent_disks(agents[position], disks[position])
        unchanged = same and before.limit == limit and not changed_positions(before.disks, disks)
        fullest = before.fullest if unchanged else _fullest(disks, limit)
        self._ranked = _RankedDisks(agents, disks, limit, fullest)
        return [*fullest]


def _fullest(known: Sequence[_AgentDisks], limit: int) -> list[DiskRow]:
    shared: dict[str, _RankedDisk] = {}
    mounts: Counter[str] = Counter()
    for entry in chain.from_iterable([disks.shared for disks in known if disks.shared]):
        shared[entry[2].device] = entry
        mounts[entry[2].device] += 1
    local = chain.from_iterable([disks.local for disks in known if disks.local])
    fullest = heapq.nlargest(limit, chain(local, shared.values()), key=itemgetter(0))
    return [
        DiskRow(node, disk, None if ratio == UNRESPONSIVE_RATIO else ratio, mounts[disk.device] or 1)
        for ratio, node, disk in fullest
    ]


def _agent_disks(agent: AgentFact, before: _AgentDisks) -> _AgentDisks:
    """Disks of an agent that answers; the same object if it reports the same as before."""
    snapshot = agent.snapshot if agent.silent_since is None else None
    reported, node = (snapshot.disk, agent.node or snapshot.node) if snapshot is not None else (None, "")
    if before.reported is reported and before.node == node:
        return before
    local: list[_RankedDisk] = []
    shared: list[_RankedDisk] = []
    for disk in reported or ():
        ratio = used_ratio(disk)
        kind = shared if "nas" in disk.roles else local
        kind.append((UNRESPONSIVE_RATIO if ratio is None else ratio, node, disk))
    return _AgentDisks(node, reported, tuple(local), tuple(shared))


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
