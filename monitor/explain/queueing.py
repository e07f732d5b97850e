"""Pods that a queue holds back: which PodGroup, Workload and queue a pod belongs to, and what these say."""

from __future__ import annotations

from monitor.explain import kueue, volcano
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text


def held_back(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Given a pending pod, return why a queue, a group or a gate keeps it from the scheduler, or None."""
    return kueue.held_back(pod, facts) or volcano.held_back(pod, facts) or _gated(pod)


def _gated(pod: PodFact) -> PodDiagnosis | None:
    """A gate keeps the scheduler from even looking at a pod until whoever put it there takes it away."""
    if not pod.scheduling_gates:
        return None
    gates = ", ".join(pod.scheduling_gates)
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.OTHER,
        Text(Key.GATED, {"gates": gates}),
        advice=(Text(Key.GATED_ADVICE, {"gates": gates}),),
    )
