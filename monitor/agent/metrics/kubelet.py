"""Thresholds of the kubelet, to be compared with disk usage."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import Metric

from monitor.base.metrics import Row, gauges
from monitor.facts import EvictionFact, KubeletFact, NodeSnapshot

_HIGH = "Usage of the image disk at which the kubelet starts to remove images."
_LOW = "Usage of the image disk at which the kubelet stops removing images."
_EVICTION = "The kubelet evicts pods when less than this is available."

IMAGE_GC: tuple[Row[KubeletFact], ...] = (
    ("gpuwarden_kubelet_image_gc_high_ratio", _HIGH, lambda kubelet: kubelet.image_gc_high_ratio),
    ("gpuwarden_kubelet_image_gc_low_ratio", _LOW, lambda kubelet: kubelet.image_gc_low_ratio),
)
EVICTIONS: tuple[Row[EvictionFact], ...] = (
    ("gpuwarden_kubelet_eviction_available_ratio", _EVICTION, lambda eviction: eviction.available_ratio),
    ("gpuwarden_kubelet_eviction_available_bytes", _EVICTION, lambda eviction: eviction.available_bytes),
)


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Thresholds of the kubelet; none if they are unknown."""
    kubelet = snapshot.kubelet
    if kubelet is None:
        return
    yield from gauges(IMAGE_GC, (), [((), kubelet)])
    yield from gauges(EVICTIONS, ("signal",), [((fact.signal,), fact) for fact in kubelet.eviction_hard or ()])
