"""Containers that have just failed."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.facts.kube import ContainerStatusFact, PodFact

NEW_FAILURE_SECONDS = 10.0


def nodes_with_new_failures(pods: Iterable[PodFact | None], now: float) -> frozenset[str]:
    """Nodes of the pods with a container that exited with an error a moment ago."""
    return frozenset(
        pod.node
        for pod in pods
        if pod is not None and pod.node and any(_has_just_failed(status, now) for status in pod.statuses)
    )


def _has_just_failed(status: ContainerStatusFact, now: float) -> bool:
    end = status if status.state == "terminated" else status.last
    if end is None or not end.exit_code or end.finished_at is None:
        return False
    return abs(now - end.finished_at) < NEW_FAILURE_SECONDS
