"""Short constructors for cluster views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder

HOUR0 = 1_763_258_400.0  # 2025-11-16 02:00 UTC


def holder(user: str | None = "zhang", queue: str | None = "nlp", live: bool | None = True) -> Holder:
    return Holder(pod_uid=f"uid-{user}", user=user, queue=queue, live=live)


def gpu(state: GpuState, *holders: Holder, node: str = "n1", index: int = 0, load: float | None = None) -> GpuView:
    return GpuView(node=node, state=state, index=index, holders=holders, utilization_ratio=load)


def view(*gpus: GpuView, at: float = HOUR0, **more: Any) -> ClusterView:
    return ClusterView(at=at, gpus=gpus, **more)


def rounded(values: dict[str, float]) -> dict[str, float]:
    """Non-zero values, rounded."""
    return {name: round(value, 6) for name, value in values.items() if value}


def figures(found: object, names: Sequence[str]) -> dict[str, float]:
    return rounded({name: getattr(found, name) for name in names})
