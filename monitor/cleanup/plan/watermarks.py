"""High-water and low-water marks of disks. Pure."""

from __future__ import annotations

from dataclasses import replace

from monitor.cleanup.policy import KUBELET_HIGH_RATIO, KUBELET_IMAGEFS_RATIO, KUBELET_MARGIN_RATIO, When
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact, EvictionFact

STALE_AFTER_SECONDS = 600.0  # the word of an agent that is older, or whose clock is so far off, decides nothing


def is_stale(snapshot: NodeSnapshot, now: float) -> bool:
    """Return whether a snapshot is old, or its node's clock wrong: ages by it would be wrong too."""
    return abs(now - snapshot.at) > STALE_AFTER_SECONDS


def needed_bytes(disk: DiskFact | None, low: float | None) -> int | None:
    """Given a disk and its low-water mark, return what has to be freed to get there; None if that is not known.

    Full is what df calls full: what the filesystem keeps for root cannot be had.
    """
    if disk is None or low is None or disk.used_bytes is None or disk.available_bytes is None:
        return None
    return max(0, -int((disk.used_bytes + disk.available_bytes) * low - disk.used_bytes))


def kubelet_high_ratio(snapshot: NodeSnapshot, disk: DiskFact | None) -> float:
    """Given the disk of a node's images, return how full it is when the kubelet removes some itself, as a share.

    It does so to collect garbage, and before it evicts pods because of a full disk. What it was not told is as usual.
    """
    kubelet = snapshot.kubelet
    told = kubelet.image_gc_high_ratio if kubelet is not None else None
    marks = [KUBELET_HIGH_RATIO if told is None else told]
    if kubelet is None or kubelet.eviction_hard is None:
        return min(*marks, 1 - KUBELET_IMAGEFS_RATIO)
    roles = disk.roles if disk is not None else ()
    looked_at = ("imagefs.available", *(("nodefs.available",) if "kubelet" in roles else ()))
    marks += [_eviction_ratio(each, disk) for each in kubelet.eviction_hard if each.signal in looked_at]
    return min(marks)


def _eviction_ratio(eviction: EvictionFact, disk: DiskFact | None) -> float:
    """Return how full a disk is when so much is available that the kubelet evicts; 1 if that cannot be told."""
    share = eviction.available_ratio
    if share is None and eviction.available_bytes is not None and disk is not None and disk.size_bytes:
        share = min(1.0, eviction.available_bytes / disk.size_bytes)
    return 1.0 if share is None else 1 - share


def below_kubelet(when: When, kubelet: float) -> When:
    """Given marks and where the kubelet acts, return the marks that hold: both are lower where it would be first."""
    if not when.yield_to_kubelet or when.high is None:
        return when
    high = min(when.high, max(0.0, round(kubelet - KUBELET_MARGIN_RATIO, 6)))
    lower = when.high - high
    return replace(when, high=high, low=None if when.low is None else max(0.0, round(when.low - lower, 6)))


def effective_marks(when: When, snapshot: NodeSnapshot, disk: DiskFact | None) -> When:
    """Given a policy's marks, a node and the disk that they are about there, return the marks that hold on it."""
    return below_kubelet(when, kubelet_high_ratio(snapshot, disk)) if when.yield_to_kubelet else when
