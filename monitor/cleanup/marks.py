"""High-water and low-water marks of disks. Pure."""

from __future__ import annotations

from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact

STALE_AFTER = 600.0  # the word of an agent that is older, or whose clock is so far off, decides nothing


def out_of_step(snapshot: NodeSnapshot, now: float) -> bool:
    """Return whether a snapshot is old, or its node's clock wrong: ages by it would be wrong too."""
    return abs(now - snapshot.at) > STALE_AFTER


def needed_bytes(disk: DiskFact | None, low: float | None) -> int | None:
    """Given a disk and its low-water mark, return what has to be freed to get there; None if that is not known.

    Full is what df calls full: what the filesystem keeps for root cannot be had.
    """
    if disk is None or low is None or disk.used_bytes is None or disk.available_bytes is None:
        return None
    return max(0, -int((disk.used_bytes + disk.available_bytes) * low - disk.used_bytes))
