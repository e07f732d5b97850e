"""From when on the kubelet acts by itself, to be drawn beside how full the disks are."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import Metric

from monitor.base.metrics import Row, gauges
from monitor.facts import EvictionFact, KubeletFact, NodeSnapshot

_HIGH = "How full the disk of images is when the kubelet begins to remove some."
_LOW = "How full the disk of images is when the kubelet stops removing some."
_EVICTION = "The kubelet evicts pods when less than this is available."

MARKS: tuple[Row[KubeletFact], ...] = (
    ("gpuwarden_kubelet_image_gc_high_ratio", _HIGH, lambda kubelet: kubelet.image_gc_high_ratio),
    ("gpuwarden_kubelet_image_gc_low_ratio", _LOW, lambda kubelet: kubelet.image_gc_low_ratio),
)
EVICTIONS: tuple[Row[EvictionFact], ...] = (
    ("gpuwarden_kubelet_eviction_available_ratio", _EVICTION, lambda eviction: eviction.available_ratio),
    ("gpuwarden_kubelet_eviction_available_bytes", _EVICTION, lambda eviction: eviction.available_bytes),
)


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Yield the kubelet's thresholds."""
    kubelet = snapshot.kubelet
    if kubelet is None:
        return
    yield from gauges(MARKS, (), [((), kubelet)])
    yield from gauges(EVICTIONS, ("signal",), [((each.signal,), each) for each in kubelet.eviction_hard or ()])
