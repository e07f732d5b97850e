"""Which pods are not well, and why: explained a few at a time, so that a large cluster costs no more than a small one.

An explanation of a waiting pod looks at every node; waiting pods that are alike share one. Every other pod has its own.
What was explained is remembered until the pod changes or it is its turn again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from monitor.detect.lib.pending_answers import PendingAnswer, answer_some, for_pod, shape
from monitor.explain.model import PodRef, PodStatus
from monitor.explain.not_created import WORST_FIRST
from monitor.explain.pod import explain_pod, pod_reference
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.queries.cluster import HEALTHY_STATUSES

MAX_NAMED_PODS = 500  # pods that are named; the others are counted
CPU_BUDGET_SECONDS = 0.25  # seconds of CPU for the explanations of one round
Key = tuple[object, ...]


@dataclass(frozen=True)
class UnhealthyPod:
    """A pod that is not well, and the enumerated words that say why."""

    pod: PodRef
    status: str
    cause: str


@dataclass(frozen=True)
class PodHealth:
    """Pods that are not well. `counts` are all of them by status and cause, `pods` those in the worst state.

    `beyond` are those that are counted and not named, and pods of which nobody knows yet whether they are well.
    """

    pods: tuple[UnhealthyPod, ...]
    counts: Mapping[tuple[str, str], int]
    omitted: int


@dataclass(frozen=True)
class _Explained:
    """What was explained: of which pod, when, and the words; of waiting pods, the answer that they share."""

    pod: PodFact
    at: float
    status: PodStatus = PodStatus.PENDING
    cause: str = ""
    shared: PendingAnswer | None = None


class PodHealthChecker:
    """Explains in rounds. Used from one thread; `spent` gives the CPU seconds of that."""

    def __init__(self, most: int = MAX_NAMED_PODS, budget: float = CPU_BUDGET_SECONDS, spent: Callable[[], float] = time.thread_time) -> None:
        self._most = most
        self._budget = budget
        self._spent = spent
        self._known: dict[Key, _Explained] = {}

    def round(self, world: ClusterFacts, now: float) -> PodHealth:
        """Given everything known, return which pods are not well, as far as that was found out until now."""
        asked = [(_key(pod, world), pod) for pod in world.pods if not pod.finished or pod.deletion_at]
        self._explain(dict(asked), world, now)
        found, unknown = [], 0
        for key, pod in asked:
            known = self._known.get(key)
            if known is None:
                unknown += 1
            elif known.status not in HEALTHY_STATUSES:
                cause = known.cause if known.shared is None else for_pod(known.shared, pod).cause
                found.append((pod, known.status, cause))
        found.sort(key=lambda each: (WORST_FIRST.index(each[1]), each[0].namespace, each[0].name))
        named = tuple(
            UnhealthyPod(pod_reference(pod, world), status.value, cause) for pod, status, cause in found[: self._most]
        )
        counts = Counter((status.value, cause) for _, status, cause in found)
        return PodHealth(named, counts, unknown + len(found) - len(named))

    def _explain(self, wanted: Mapping[Key, PodFact], world: ClusterFacts, now: float) -> None:
        """Explain what is new first, and of that what does not run yet; then what was explained longest ago."""
        known = self._known
        self._known = known = {
            key: known[key] for key, pod in wanted.items() if key in known and _same(known[key], pod)
        }
        turn = sorted(wanted, key=lambda key: (known[key].at if key in known else 0.0, wanted[key].phase == "Running"))
        until = self._spent() + self._budget
        for key in turn:
            if self._spent() >= until:
                return
            known[key] = _explained(wanted[key], world, now)


def _key(pod: PodFact, world: ClusterFacts) -> Key:
    """Return what a pod's explanation is remembered by."""
    return shape(pod, world) if _waits(pod) else (pod.uid,)


def _waits(pod: PodFact) -> bool:
    return pod.node is None and pod.deletion_at is None


def _same(known: _Explained, pod: PodFact) -> bool:
    """Return whether an explanation still holds: pods that wait alike do so whichever of them was looked at."""
    return known.shared is not None or known.pod is pod


def _explained(pod: PodFact, world: ClusterFacts, now: float) -> _Explained:
    if _waits(pod):
        return _Explained(pod, now, shared=answer_some({pod.uid: pod}, {}, world, now)[pod.uid])
    found = explain_pod(pod, world, now)
    return _Explained(pod, now, found.status, found.cause)
