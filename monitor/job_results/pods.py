"""What the end of a job depends on in one pod: whether it is over, and why."""

from __future__ import annotations

from msgspec.structs import replace

from monitor.explain.crash import START_FAILED_REASONS, last_termination
from monitor.explain.finished import finished
from monitor.explain.image_pull import PULL_REASONS
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis
from monitor.explain.pod import CANNOT_START_REASONS, CONFIGURATION_REASONS, explain_pod
from monitor.explain.refused import disrupted
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_requests import whole_gpus
from monitor.facts.kube import ContainerStatusFact, PodFact
from monitor.facts.text import Text
from monitor.job_results.model import DELETED, UNSEEN, PodEnd, TrackedPod, Why

MAX_EVIDENCE = 2  # of a pod, in the message about its job
CLOCK_ERROR_SECONDS = 2.0  # between the API server, which deletes, and the node, which says when a container ended
LOST_NODE_SECONDS = 30.0  # after the grace period, a pod that is being deleted on a silent node is lost
_STUCK_REASONS = PULL_REASONS.union(CANNOT_START_REASONS, CONFIGURATION_REASONS)
_SAID_ELSEWHERE = frozenset({Key.RAN_FOR, Key.RESTARTED, Key.FIRST_FAILED_POD})


def tracked_pod(pod: PodFact, facts: ClusterFacts, before: TrackedPod | None, now: float) -> TrackedPod:
    """State of a pod that Kubernetes has."""
    started = min((at for status in pod.statuses if (at := _began(status)) is not None), default=None)
    known = TrackedPod(
        uid=pod.uid,
        name=pod.name,
        created_at=pod.created_at if pod.created_at is not None else now,
        node=pod.node,
        started_at=started if started is not None or before is None else before.started_at,
        gpus=whole_gpus(pod.requests, facts.resource),
        controller=pod.owner.uid if pod.owner is not None and _is_job(pod) else None,
        owned=pod.owner is not None,
        reported=before is not None and before.reported,
    )
    if pod.finished:
        return _finished(known, pod, facts, before, now)
    if pod.deletion_at is not None:
        return _removed_with_its_node(known, pod, facts, before, now)
    return _perhaps_stuck(known, pod, facts, before, now)


def vanished_pod(before: TrackedPod, last: PodFact | None, facts: ClusterFacts, now: float) -> TrackedPod:
    """State of a pod that Kubernetes has no longer; `last` is its last version, if it was seen."""
    if last is not None and last.finished:
        before = tracked_pod(last, facts, before, now)
    if before.over:
        return replace(before, present=False)
    why = removal(last, facts) if last is not None else before.why if before.stuck_at is None else None
    if why is None:
        why = Why(cause=UNSEEN, headline=Text("job-stopped.unseen"))
    return replace(before, end=PodEnd.REMOVED, why=why, finished_at=now, seen_over_at=now, stuck_at=None, present=False)


def removal(pod: PodFact, facts: ClusterFacts) -> Why:
    """Why Kubernetes removes a pod whose program did not end by itself."""
    diagnosis = disrupted(pod)
    if diagnosis is not None and diagnosis.cause != "evicted-by-taint":
        return _why(diagnosis)
    if _is_node_lost(pod, facts):
        values = {"node": pod.node or "?"}
        advice = (Text(Key.SUBMIT_AGAIN_ADVICE, dict(values)),)
        return Why(cause="node-lost", headline=Text(Key.NODE_WENT_DOWN, dict(values)), advice=advice)
    if diagnosis is not None:
        return _why(diagnosis)
    return Why(cause=DELETED, headline=Text("job-stopped.deleted"))


def finish_time(pod: PodFact) -> float | None:
    """When a finished pod ended, as far as it says."""
    ends = [status.finished_at for status in pod.statuses if status.finished_at is not None]
    changes = [condition.since for condition in pod.conditions if condition.since is not None]
    return max(ends or changes or [at for at in (pod.started_at, pod.created_at) if at is not None], default=None)


def _finished(
    known: TrackedPod, pod: PodFact, facts: ClusterFacts, before: TrackedPod | None, now: float
) -> TrackedPod:
    if before is not None and before.over and before.reported:
        return replace(before, present=True)
    ended_at = finish_time(pod)
    seen = before.seen_over_at if before is not None and before.over else None
    over = replace(known, finished_at=ended_at, seen_over_at=now if seen is None else seen)
    if _ended_by_deletion(pod, ended_at):
        return replace(over, end=PodEnd.REMOVED, why=removal(pod, facts))
    end = PodEnd.SUCCEEDED if pod.phase == "Succeeded" else PodEnd.FAILED
    return replace(over, end=end, why=_why(finished(pod, facts)))


def _ended_by_deletion(pod: PodFact, ended_at: float | None) -> bool:
    """Whether the program ended because the pod was being deleted."""
    if pod.deletion_at is None or ended_at is None:
        return False
    asked_at = pod.deletion_at - (pod.deletion_grace_seconds or 0.0)
    return ended_at >= asked_at - CLOCK_ERROR_SECONDS


def _removed_with_its_node(
    known: TrackedPod, pod: PodFact, facts: ClusterFacts, before: TrackedPod | None, now: float
) -> TrackedPod:
    """A pod that is being deleted. On a node that does not answer, it is not known to end."""
    why = removal(pod, facts)
    lost = _is_node_lost(pod, facts) and now >= (pod.deletion_at or now) + LOST_NODE_SECONDS
    if not lost:
        return replace(known, why=why)
    seen = before.seen_over_at if before is not None and before.over else None
    return replace(
        known, end=PodEnd.REMOVED, why=why, finished_at=pod.deletion_at, seen_over_at=now if seen is None else seen
    )


def _perhaps_stuck(
    known: TrackedPod, pod: PodFact, facts: ClusterFacts, before: TrackedPod | None, now: float
) -> TrackedPod:
    """A pod that runs or waits, and why it cannot start."""
    if not any(_cannot_start(status) for status in pod.statuses):
        return known
    explained = explain_pod(pod, facts, now)
    why = Why(
        cause=explained.cause,
        headline=explained.headline,
        evidence=_evidence(explained.evidence),
        advice=explained.advice[:1],
    )
    since = before.stuck_at if before is not None and before.stuck_at is not None else now
    return replace(known, why=why, stuck_at=since)


def _cannot_start(status: ContainerStatusFact) -> bool:
    if status.state != "waiting":
        return False
    looping = status.reason == "CrashLoopBackOff" and last_termination(status).reason in START_FAILED_REASONS
    return looping or status.reason in _STUCK_REASONS


def _began(status: ContainerStatusFact) -> float | None:
    """When a container first ran, as far as its status tells; not of one that could not start."""
    times = []
    if status.reason not in START_FAILED_REASONS:
        times.append(status.started_at)
    if status.last is not None and status.last.reason not in START_FAILED_REASONS:
        times.append(status.last.started_at)
    return min((at for at in times if at is not None and at > 0), default=None) if not status.init else None


def _is_job(pod: PodFact) -> bool:
    owner = pod.owner
    return owner is not None and owner.kind == "Job" and (owner.api_version or "batch/v1").startswith("batch/")


def _is_node_lost(pod: PodFact, facts: ClusterFacts) -> bool:
    """Whether the node of a pod is gone or silent."""
    if pod.node is None or not facts.node_by_name:
        return False
    node = facts.node_by_name.get(pod.node)
    return node is None or node.ready is not True


def _why(diagnosis: PodDiagnosis) -> Why:
    return Why(
        cause=diagnosis.cause,
        headline=diagnosis.headline,
        evidence=_evidence(diagnosis.evidence),
        advice=diagnosis.advice[:1],
    )


def _evidence(texts: tuple[Text, ...]) -> tuple[Text, ...]:
    """The most telling sentences: the line of the log first."""
    telling = [text for text in texts if text.key not in _SAID_ELSEWHERE]
    return tuple(sorted(telling, key=lambda text: text.key != Key.LOG_SAYS)[:MAX_EVIDENCE])
