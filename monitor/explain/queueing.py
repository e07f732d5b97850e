"""Pods held back by a queue, a pod group or a scheduling gate."""

from __future__ import annotations

from monitor.explain import kueue, volcano
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, pending_diagnosis
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact


def held_back(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Why a queue, pod group or gate keeps a pending pod from the scheduler, or None."""
    return kueue.held_back(pod, facts) or volcano.held_back(pod, facts) or _gated(pod)


def _gated(pod: PodFact) -> PodDiagnosis | None:
    """The scheduler ignores a pod until its scheduling gates are removed."""
    if not pod.scheduling_gates:
        return None
    gates = ", ".join(pod.scheduling_gates)
    return pending_diagnosis(PendingCause.OTHER, Key.GATED, Key.GATED_ADVICE, {"gates": gates})
