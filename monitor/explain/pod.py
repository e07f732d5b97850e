"""Explanation of one pod: selects the situation and its diagnosis."""

from __future__ import annotations

from dataclasses import replace

from monitor.explain import crash, finished, pulling, running, starting, terminating
from monitor.explain.first_failure import with_first_failure
from monitor.explain.image_pull import PULL_REASONS
from monitor.explain.model import Explanation, PodDiagnosis, PodRef, PodStatus, deciding_containers, running_containers
from monitor.explain.pending import pending
from monitor.explain.resize import pending_resize
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import ContainerStatusFact, PodFact

CONFIGURATION_REASONS = ("CreateContainerConfigError",)
CANNOT_START_REASONS = (
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PreStartHookError",
    "PostStartHookError",
)


def explain_pod(pod: PodFact, facts: ClusterFacts, now: float) -> Explanation:
    """Why the pod is in its current status."""
    diagnosis = _diagnosis(pod, facts, now)
    first = with_first_failure(pod, diagnosis, facts)
    diagnosis = replace(diagnosis, evidence=(*first, *diagnosis.evidence, *pending_resize(pod)))
    since = _since(pod, diagnosis.status, facts)
    seconds = max(0.0, now - since) if since is not None else None
    return diagnosis.explain(pod_reference(pod, facts), seconds)


def pod_status(pod: PodFact, facts: ClusterFacts, now: float) -> tuple[PodStatus, str]:
    """Status and cause of the pod, without the evidence that compares it with all others."""
    diagnosis = _diagnosis(pod, facts, now, brief=True)
    return diagnosis.status, diagnosis.cause


def pod_reference(pod: PodFact, facts: ClusterFacts) -> PodRef:
    """Reference to the pod. The queue of its group or workload takes precedence over its labels."""
    who, queued = facts.identity(pod), facts.group_of(pod) or facts.workload_of(pod)
    queue = (queued.queue if queued else None) or who.queue
    return PodRef(pod.namespace, pod.name, pod.uid, pod.node, who.user, who.job, queue)


def _diagnosis(pod: PodFact, facts: ClusterFacts, now: float, *, brief: bool = False) -> PodDiagnosis:
    if pod.deletion_at is not None:
        return terminating.terminating(pod, facts, now)
    if pod.finished:
        return finished.finished(pod, facts)
    if pod.node is None:
        return pending(pod, facts, now)
    if diagnosis := _failing(pod, facts, brief=brief):
        return diagnosis
    return (running.running if running_containers(pod) else starting.starting)(pod, facts, now)


def _failing(pod: PodFact, facts: ClusterFacts, *, brief: bool) -> PodDiagnosis | None:
    """Diagnosis of the first failing container, init containers first and sidecars last, or None."""
    for status in deciding_containers(pod):
        if status.state == "waiting" and status.reason in PULL_REASONS:
            return pulling.failing(pod, status, facts, brief=brief)
        if status.state == "waiting" and status.reason in CONFIGURATION_REASONS:
            return starting.bad_configuration(pod, status, facts)
        if _could_not_start(status):
            return crash.cannot_start(pod, status, facts)
        if _crashed(status):
            return crash.crashed(pod, status, facts)
    return None


def _could_not_start(status: ContainerStatusFact) -> bool:
    if status.state == "waiting" and status.reason in CANNOT_START_REASONS:
        return True
    between_runs = status.state == "terminated" or status.reason == "CrashLoopBackOff"
    return between_runs and crash.last_termination(status).reason in crash.START_FAILED_REASONS


def _crashed(status: ContainerStatusFact) -> bool:
    """An init container that exited with 0 is done; any other terminated container is restarted."""
    if status.state == "waiting":
        return status.reason == "CrashLoopBackOff"
    return status.state == "terminated" and status.exit_code != 0


def _since(pod: PodFact, status: PodStatus, facts: ClusterFacts) -> float | None:
    """When the pod entered this status."""
    if status is PodStatus.IDLE:
        return max((gpu.idle_since for gpu in facts.gpus_by_pod.get(pod.uid, ()) if gpu.idle_since), default=None)
    if status is PodStatus.TERMINATING and pod.deletion_at is not None:
        return pod.deletion_at - (pod.deletion_grace_seconds or 0.0)
    if status is PodStatus.FINISHED:
        ends = [container.finished_at for container in pod.statuses if container.finished_at is not None]
        return max(ends, default=None)
    if status is PodStatus.PENDING:
        return pod.created_at
    starts = [container.started_at for container in running_containers(pod) if container.started_at]
    return min(starts, default=pod.started_at or pod.created_at)
