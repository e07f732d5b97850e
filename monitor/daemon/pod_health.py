"""Unhealthy pods and their causes, explained a few per round so that CPU use does not grow with the cluster.

Explaining a waiting pod visits every node; waiting pods of the same shape share one explanation. Explanations are
cached until the pod changes or its turn comes again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from monitor.detect.lib.pending_answers import PendingAnswer, answer_for_pod, explain_pending, pod_shape
from monitor.explain.model import PodRef, PodStatus
from monitor.explain.not_created import WORST_FIRST
from monitor.explain.pod import explain_pod, pod_reference
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.queries.cluster import HEALTHY_STATUSES

MAX_NAMED_PODS = 500  # the others are only counted
CPU_BUDGET_SECONDS = 0.25  # for the explanations of one round
Key = tuple[object, ...]


@dataclass(frozen=True)
class UnhealthyPod:
    """An unhealthy pod with its status and cause."""

    pod: PodRef
    status: str
    cause: str


@dataclass(frozen=True)
class PodHealth:
    """Unhealthy pods: the worst as `pods`, all of them by status and cause as `counts`.

    `omitted` counts pods missing from `pods`: those beyond its maximum, and those not explained yet.
    """

    pods: tuple[UnhealthyPod, ...]
    counts: Mapping[tuple[str, str], int]
    omitted: int


@dataclass(frozen=True)
class _Explained:
    """A cached explanation. Waiting pods of the same shape share the answer in `shared`."""

    pod: PodFact
    at: float
    status: PodStatus = PodStatus.PENDING
    cause: str = ""
    shared: PendingAnswer | None = None


class PodHealthChecker:
    """Explains pods in rounds, on one thread. `spent` is the CPU time of that thread in seconds."""

    def __init__(
        self,
        max_named: int = MAX_NAMED_PODS,
        budget: float = CPU_BUDGET_SECONDS,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        self._max_named = max_named
        self._budget = budget
        self._spent = spent
        self._cache: dict[Key, _Explained] = {}

    def round(self, world: ClusterFacts, now: float) -> PodHealth:
        """Spend one CPU budget on explanations, and return the health of all pods as far as it is known."""
        pods = [(_key(pod, world), pod) for pod in world.pods if not pod.finished or pod.deletion_at]
        self._explain(dict(pods), world, now)
        unhealthy, unknown = [], 0
        for key, pod in pods:
            explained = self._cache.get(key)
            if explained is None:
                unknown += 1
            elif explained.status not in HEALTHY_STATUSES:
                cause = explained.cause if explained.shared is None else answer_for_pod(explained.shared, pod).cause
                unhealthy.append((pod, explained.status, cause))
        unhealthy.sort(key=lambda entry: (WORST_FIRST.index(entry[1]), entry[0].namespace, entry[0].name))
        named = tuple(
            UnhealthyPod(pod_reference(pod, world), status.value, cause)
            for pod, status, cause in unhealthy[: self._max_named]
        )
        counts = Counter((status.value, cause) for _, status, cause in unhealthy)
        return PodHealth(named, counts, unknown + len(unhealthy) - len(named))

    def _explain(self, pods: Mapping[Key, PodFact], world: ClusterFacts, now: float) -> None:
        """Explain new pods first, of these the ones that do not run yet; then the oldest explanations."""
        cache = {key: self._cache[key] for key, pod in pods.items() if _is_valid(self._cache.get(key), pod)}
        self._cache = cache
        order = sorted(pods, key=lambda key: (cache[key].at if key in cache else 0.0, pods[key].phase == "Running"))
        until = self._spent() + self._budget
        for key in order:
            if self._spent() >= until:
                return
            cache[key] = _explain_one(pods[key], world, now)


def _key(pod: PodFact, world: ClusterFacts) -> Key:
    return pod_shape(pod, world) if _is_waiting(pod) else (pod.uid,)


def _is_waiting(pod: PodFact) -> bool:
    return pod.node is None and pod.deletion_at is None


def _is_valid(explained: _Explained | None, pod: PodFact) -> bool:
    """Whether a cached explanation still applies. A shared one applies to every pod of its shape."""
    return explained is not None and (explained.shared is not None or explained.pod is pod)


def _explain_one(pod: PodFact, world: ClusterFacts, now: float) -> _Explained:
    if _is_waiting(pod):
        return _Explained(pod, now, shared=explain_pending(pod, world, now))
    explanation = explain_pod(pod, world, now)
    return _Explained(pod, now, explanation.status, explanation.cause)
