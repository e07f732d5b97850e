"""Finished pods: succeeded, rejected by the node, evicted, or failed."""

from __future__ import annotations

from dataclasses import replace

from monitor.explain import crash
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.explain.refused import refused
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value


def finished(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis:
    """Diagnosis of a finished pod."""
    if pod.phase == "Succeeded":
        return PodDiagnosis(PodStatus.FINISHED, "done", Text(Key.DONE, {"pod": pod.name}))
    if diagnosis := refused(pod):
        return diagnosis
    failed = crash.failed_containers(pod)
    if failed:
        first = min(failed, key=lambda status: crash.last_termination(status).finished_at or 0.0)
        not_started = crash.last_termination(first).reason in crash.START_FAILED_REASONS
        diagnose = crash.cannot_start if not_started else crash.crashed
        return replace(diagnose(pod, first, facts), status=PodStatus.FINISHED)
    values: dict[str, Value] = {"pod": pod.name, "message": quote(pod.message or pod.reason) or "?"}
    return PodDiagnosis(PodStatus.FINISHED, "failed", Text(Key.FAILED, values))
