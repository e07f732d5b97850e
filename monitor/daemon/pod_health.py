"""Unhealthy pods and their causes: each pod is explained when it changes, and again after a while.

An explanation also depends on other facts (the GPUs of the pod, its node, free capacity), so it is repeated. The health
of a running pod without GPUs depends on the pod alone. Explaining a waiting pod visits every node; waiting pods of the
same shape share one explanation.
"""

from __future__ import annotations

import heapq
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.detect.lib.pending_answers import PendingAnswer, answer_for_pod, explain_pending, known_answer, shape_id
from monitor.explain.fit import requested_gpus
from monitor.explain.model import PodRef, PodStatus
from monitor.explain.not_created import WORST_FIRST
from monitor.explain.pod import pod_reference, pod_status
from monitor.facts.changes import Changes
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.queries.cluster import HEALTHY_STATUSES

log = logging.getLogger(__name__)
MAX_NAMED_PODS = 500  # the others are only counted
CPU_BUDGET_SECONDS = 0.01  # for the explanations that follow one evaluation
REPEAT_SECONDS = 60.0
UNREAD_SECONDS = 300.0  # without a reader for this long, pods are no longer explained


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


class PodHealthTracker:
    """Follows the facts on the thread that changes them; `health` may be called by any thread.

    `spent` is the CPU time of the following thread in seconds.
    """

    def __init__(
        self,
        max_named: int = MAX_NAMED_PODS,
        budget: float = CPU_BUDGET_SECONDS,
        spent: Callable[[], float] = time.thread_time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_named = max_named
        self._budget = budget
        self._spent = spent
        self._monotonic = monotonic
        self._read_at = float("-inf")
        self._found_by_rule: Any = None
        self._lock = threading.Lock()  # guards the unhealthy pods
        self._clear()

    def _clear(self) -> None:
        self._known = False
        self._queue: list[tuple[float, str]] = []  # pods by the time when they are due
        self._due: dict[str, float] = {}
        self._answers: dict[str, PendingAnswer] = {}  # by shape
        self._unexplained: set[str] = set()
        self._unhealthy: dict[str, UnhealthyPod] = {}

    def health(self) -> PodHealth | None:
        """Health of all pods as far as it is known; None until the next evaluation if unread for a while."""
        self._read_at = self._monotonic()
        with self._lock:
            if not self._known:
                return None
            unhealthy, unexplained = list(self._unhealthy.values()), len(self._unexplained)
        unhealthy.sort(key=_severity)
        counts = Counter((entry.status, entry.cause) for entry in unhealthy)
        named = tuple(unhealthy[: self._max_named])
        return PodHealth(named, counts, unexplained + len(unhealthy) - len(named))

    def follow(self, facts: ClusterFacts, changes: Changes, now: float, answers: Any = None) -> None:
        """Explain pods that have changed, then those that were explained longest ago, within the CPU budget.

        `answers` is the memory of the rule pod-pending, which has already explained the pods that wait for long.
        """
        with self._lock:
            self._found_by_rule = answers
            if self._monotonic() - self._read_at > UNREAD_SECONDS:
                self._clear()
                return
            if any(source.name == "kubernetes" and not source.ok for source in facts.sources):
                return  # the only source of pods
            everything = changes.complete or not self._known
            if everything:
                self._clear()
            for uid in facts.pod_by_uid if everything else changes.pods:
                self._note(uid, facts.pod_by_uid.get(uid))
            self._explain_due(facts, now)
            self._known = True

    def _note(self, uid: str, pod: PodFact | None) -> None:
        """Explain a changed pod next; forget one that is gone or has finished."""
        if pod is None or (pod.finished and pod.deletion_at is None):
            for known in (self._due, self._unhealthy):
                known.pop(uid, None)
            self._unexplained.discard(uid)
            return
        if uid not in self._due:
            self._unexplained.add(uid)
        self._schedule(uid, 1.0 if pod.phase == "Running" else 0.0)

    def _schedule(self, uid: str, at: float) -> None:
        self._due[uid] = at
        heapq.heappush(self._queue, (at, uid))

    def _explain_due(self, facts: ClusterFacts, now: float) -> None:
        until = self._spent() + self._budget
        while self._queue and self._queue[0][0] <= now and self._spent() < until:
            at, uid = heapq.heappop(self._queue)
            pod = facts.pod_by_uid.get(uid)
            if self._due.get(uid) == at and pod is not None:
                self._try_explain(pod, facts, now)
                if self._stays_healthy(pod, facts):
                    self._due[uid] = math.inf
                else:
                    self._schedule(uid, now + REPEAT_SECONDS)

    def _stays_healthy(self, pod: PodFact, facts: ClusterFacts) -> bool:
        """Whether a pod that has not changed stays healthy."""
        has_gpus = requested_gpus(pod, facts) or pod.uid in facts.gpus_by_pod
        return pod.uid not in self._unhealthy and not has_gpus

    def _try_explain(self, pod: PodFact, facts: ClusterFacts, now: float) -> None:
        try:
            self._explain(pod, facts, now)
        except Exception:  # one odd pod must not hide the others
            log.exception("cannot explain pod %s/%s", pod.namespace, pod.name)

    def _explain(self, pod: PodFact, facts: ClusterFacts, now: float) -> None:
        status, cause = self._status(pod, facts, now)
        self._unexplained.discard(pod.uid)
        if status in HEALTHY_STATUSES:
            self._unhealthy.pop(pod.uid, None)
        else:
            self._unhealthy[pod.uid] = UnhealthyPod(pod_reference(pod, facts), status.value, cause)

    def _status(self, pod: PodFact, facts: ClusterFacts, now: float) -> tuple[PodStatus, str]:
        if pod.node is not None or pod.deletion_at is not None:
            return pod_status(pod, facts, now)
        shape = shape_id(pod, facts)
        answer = known_answer(self._found_by_rule, shape) or self._own_answer(shape, pod, facts, now)
        return PodStatus.PENDING, answer_for_pod(answer, pod).cause

    def _own_answer(self, shape: str, pod: PodFact, facts: ClusterFacts, now: float) -> PendingAnswer:
        answer = self._answers.get(shape)
        if answer is None or not now - REPEAT_SECONDS < answer.at <= now:
            self._answers = {key: kept for key, kept in self._answers.items() if now - kept.at < REPEAT_SECONDS}
            answer = self._answers[shape] = explain_pending(pod, facts, now)
        return answer


def _severity(entry: UnhealthyPod) -> tuple[int, str, str]:
    return WORST_FIRST.index(PodStatus(entry.status)), entry.pod.namespace or "", entry.pod.name
