"""High-water and low-water marks of disks."""

from __future__ import annotations

from dataclasses import replace

from monitor.cleanup.policy import KUBELET_HIGH_RATIO, KUBELET_IMAGEFS_RATIO, KUBELET_MARGIN_RATIO, When
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact, EvictionFact

STALE_AFTER_SECONDS = 600.0  # an older snapshot, or one from a clock that is this far off, decides nothing


def is_stale(snapshot: NodeSnapshot, now: float) -> bool:
    """Whether a snapshot is old or its node's clock is wrong; ages computed from it would be wrong too."""
    return abs(now - snapshot.at) > STALE_AFTER_SECONDS


def needed_bytes(disk: DiskFact | None, low: float | None) -> int | None:
    """Bytes to free to reach the low-water mark; None if unknown.

    The used share is that of df: blocks that the filesystem reserves for root do not count as available.
    """
    if disk is None or low is None or disk.used_bytes is None or disk.available_bytes is None:
        return None
    return max(0, -int((disk.used_bytes + disk.available_bytes) * low - disk.used_bytes))


def kubelet_high_ratio(snapshot: NodeSnapshot, disk: DiskFact | None) -> float:
    """Used share of the image disk at which the kubelet removes images itself.

    It does so for image garbage collection, and before it evicts pods because of disk pressure. Thresholds that are not
    configured have the kubelet's defaults.
    """
    kubelet = snapshot.kubelet
    configured = kubelet.image_gc_high_ratio if kubelet is not None else None
    marks = [KUBELET_HIGH_RATIO if configured is None else configured]
    if kubelet is None or kubelet.eviction_hard is None:
        return min(*marks, 1 - KUBELET_IMAGEFS_RATIO)
    roles = disk.roles if disk is not None else ()
    signals = ("imagefs.available", *(("nodefs.available",) if "kubelet" in roles else ()))
    marks += [_eviction_ratio(eviction, disk) for eviction in kubelet.eviction_hard if eviction.signal in signals]
    return min(marks)


def _eviction_ratio(eviction: EvictionFact, disk: DiskFact | None) -> float:
    """Used share of a disk at which the kubelet evicts pods; 1 if unknown."""
    share = eviction.available_ratio
    if share is None and eviction.available_bytes is not None and disk is not None and disk.size_bytes:
        share = min(1.0, eviction.available_bytes / disk.size_bytes)
    return 1.0 if share is None else 1 - share


def below_kubelet(when: When, kubelet: float) -> When:
    """Marks lowered, both by the same amount, to stay below the kubelet's own threshold where they yield to it."""
    if not when.yield_to_kubelet or when.high is None:
        return when
    high = min(when.high, max(0.0, round(kubelet - KUBELET_MARGIN_RATIO, 6)))
    lower = when.high - high
    return replace(when, high=high, low=None if when.low is None else max(0.0, round(when.low - lower, 6)))


def effective_marks(when: When, snapshot: NodeSnapshot, disk: DiskFact | None) -> When:
    """Marks that apply to a disk of this node."""
    return below_kubelet(when, kubelet_high_ratio(snapshot, disk)) if when.yield_to_kubelet else when
