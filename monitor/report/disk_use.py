"""Who takes how much disk, as of a day, where that is known. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum

from monitor.facts.agents import AgentFact
from monitor.facts.base import Fact
from monitor.facts.cluster import PodView
from monitor.facts.datasets import ScanFact
from monitor.report.buckets import DAY


class DiskUseKind(StrEnum):
    """What takes room."""

    DATASETS = "datasets"  # below a root that was scanned, by the owner of the files
    IMAGES = "images"  # a node's image cache, which is everybody's
    WRITABLE = "writable"  # writable layers and logs of the containers of a user's pods


class DiskUse(Fact, frozen=True, kw_only=True):
    """How much room something took on a day (its first second, UTC). `user` is None where it is nobody's alone."""

    day: int
    kind: DiskUseKind
    node: str | None = None
    user: str | None = None
    bytes: int


def disk_uses(
    pods: Iterable[PodView], agents: Iterable[AgentFact], scans: Iterable[tuple[str, ScanFact]], now: float
) -> tuple[DiskUse, ...]:
    """Given pods, agents and the last scan of each root with its node, return who takes how much."""
    sums: defaultdict[tuple[int, DiskUseKind, str | None, str | None], int] = defaultdict(int)
    today = day_of(now)
    for pod in pods:
        if pod.usage.disk_bytes is not None:
            sums[today, DiskUseKind.WRITABLE, pod.node, pod.identity.user] += pod.usage.disk_bytes
    for agent in agents:
        if agent.snapshot is not None and agent.silent_since is None:
            for cache in agent.snapshot.images or ():
                if cache.total_bytes is not None:
                    sums[today, DiskUseKind.IMAGES, agent.node, None] += cache.total_bytes
    for node, scan in scans:
        for unit in scan.units:
            owner = unit.owner or f"uid {unit.owner_uid}"
            sums[day_of(scan.finished_at), DiskUseKind.DATASETS, node, owner] += unit.allocated_bytes
    return tuple(
        DiskUse(day=day, kind=kind, node=node, user=user, bytes=size) for (day, kind, node, user), size in sums.items()
    )


def day_of(at: float) -> int:
    """Given a time, return the first second of its day, UTC."""
    return int(at // DAY) * DAY
