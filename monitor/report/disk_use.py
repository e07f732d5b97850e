"""Disk space by owner and day."""

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
    """What occupies the space."""

    DATASETS = "datasets"  # below a scanned root, by file owner
    IMAGES = "images"  # a node's image cache, shared by all users
    WRITABLE = "writable"  # writable layers and logs of the containers of a user's pods


class DiskUse(Fact, frozen=True, kw_only=True):
    """Disk space on a day (its first second, UTC). `user` is None for shared space."""

    day: int
    kind: DiskUseKind
    node: str | None = None
    user: str | None = None
    bytes: int


def disk_uses(
    pods: Iterable[PodView], agents: Iterable[AgentFact], scans: Iterable[tuple[str, ScanFact]], now: float
) -> tuple[DiskUse, ...]:
    """Disk space of pods, images and datasets; `scans` are the last scan of each root, with its node."""
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
    """First second of the day of a time, UTC."""
    return int(at // DAY) * DAY
