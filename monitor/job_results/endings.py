"""Whether a job has ended, and how. One message per job: the first failure decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from monitor.explain.first_failure import failure_order
from monitor.explain.keys import Key
from monitor.facts.kube import JobFact
from monitor.facts.text import Text
from monitor.job_results.model import (
    DEADLINE,
    DELETED,
    EVICTED,
    INTERRUPTIONS,
    UNSEEN,
    JobEnding,
    JobOutcome,
    PodEnd,
    TrackedJob,
    TrackedPod,
    Why,
    ending_id,
)

LOG_WAIT_SECONDS = 15.0  # until the agent has read the log of a failed container
QUICK_SETTLE_SECONDS = 3.0  # pods of one job end one after the other
CONTROLLER_SETTLE_SECONDS = 60.0  # within which a controller that we cannot see through replaces a pod
STUCK_SECONDS = 60.0  # a pull or start that failed for this long does not succeed by itself
RECHECK_SECONDS = 5.0  # of a Job that has no pod at the moment
_DEADLINE_REASON = "DeadlineExceeded"
_ASKED_TO_STOP = ("crash-terminated", "crash-asked-to-stop")
_JOB_KINDS = ("Job", "CronJob")
_DONE = Why(cause="done", headline=Text("job-finished.done"))


@dataclass(frozen=True)
class Controllers:
    """Batch Jobs by uid; `known` says whether one that is missing has been deleted."""

    jobs: Mapping[str, JobFact]
    known: bool


@dataclass(frozen=True)
class JobDecision:
    """What to report now, or when to decide again (None: when a pod changes)."""

    ending: JobEnding | None = None
    check_at: float | None = None


def decide(job: TrackedJob, controllers: Controllers, now: float) -> JobDecision:
    """Whether the open pods of a job are its end."""
    pods = job.open_pods
    if not pods:
        return JobDecision()
    if any(not pod.over for pod in pods):
        return _decide_stuck(job, pods, now)
    uids = {pod.controller for pod in pods if pod.controller is not None}
    found = [controllers.jobs[uid] for uid in uids if uid in controllers.jobs]
    if any(not fact.ended for fact in found):
        return JobDecision(check_at=now + RECHECK_SECONDS)  # it retries, or is suspended
    due = max(pod.seen_over_at or 0.0 for pod in pods) + _settle_seconds(job, pods, jobs_known=controllers.known)
    if now < due:
        return JobDecision(check_at=due)
    return JobDecision(_ending(job, pods, found))


def _decide_stuck(job: TrackedJob, pods: Sequence[TrackedPod], now: float) -> JobDecision:
    """A job none of whose pods has run does not start if one of them cannot."""
    removing = any(not pod.over and pod.why is not None and pod.stuck_at is None for pod in pods)
    waiting = JobDecision(check_at=now + RECHECK_SECONDS if removing else None)
    stuck = [pod for pod in pods if pod.stuck_at is not None]
    if not stuck or job.stuck_reported or any(pod.started_at is not None for pod in pods):
        return waiting
    first = min(stuck, key=lambda pod: (pod.stuck_at or 0.0, pod.name))
    due = (first.stuck_at or 0.0) + STUCK_SECONDS
    if now < due or first.why is None:
        return JobDecision(check_at=due)
    ending = _report(job, pods, first, JobOutcome.NOT_STARTED, first.why, len(stuck) - 1, now)
    return JobDecision(ending)


def _settle_seconds(job: TrackedJob, pods: Sequence[TrackedPod], *, jobs_known: bool) -> float:
    """How long to wait after the last pod: for a replacement, or for the log of a failure."""
    if any(pod.owned for pod in pods) and not (jobs_known and job.kind in _JOB_KINDS):
        return CONTROLLER_SETTLE_SECONDS
    return LOG_WAIT_SECONDS if any(pod.end is PodEnd.FAILED for pod in _last_attempt(pods)) else QUICK_SETTLE_SECONDS


def _ending(job: TrackedJob, pods: Sequence[TrackedPod], controllers: Sequence[JobFact]) -> JobEnding | None:
    last = _last_attempt(pods)
    ended_at = max(pod.finished_at or pod.seen_over_at or 0.0 for pod in pods)
    succeeded = [pod for pod in last if pod.end is PodEnd.SUCCEEDED]
    failures = sorted((pod for pod in last if pod.end is not PodEnd.SUCCEEDED), key=_failure_order)
    if controllers and all(fact.completed for fact in controllers):
        return _report(job, pods, (succeeded or last)[0], JobOutcome.FINISHED, _DONE, 0, ended_at)
    if any(fact.failed_by == _DEADLINE_REASON for fact in controllers):
        why = Why(cause=DEADLINE, headline=Text(Key.DEADLINE), advice=(Text(Key.DEADLINE_ADVICE),))
        return _report(job, pods, (failures or last)[0], JobOutcome.FAILED, why, 0, ended_at)
    caused = [pod for pod in failures if _cause(pod) not in (DELETED, UNSEEN)]
    if not caused and succeeded:  # launchers that are done have their workers deleted
        return _report(job, pods, succeeded[0], JobOutcome.FINISHED, _DONE, 0, ended_at)
    decisive = (caused or failures)[0]
    if not caused and job.stuck_reported and all(pod.started_at is None for pod in pods):
        return None  # the owner knows that it did not start, and has deleted it
    why = decisive.why or Why(cause=UNSEEN, headline=Text("job-stopped.unseen"))
    stopped = why.cause in INTERRUPTIONS or why.cause.startswith(EVICTED)
    others = sum(pod.end is PodEnd.FAILED for pod in failures if pod is not decisive)
    return _report(job, pods, decisive, JobOutcome.STOPPED if stopped else JobOutcome.FAILED, why, others, ended_at)


def _last_attempt(pods: Sequence[TrackedPod]) -> list[TrackedPod]:
    """Pods that no later pod has replaced: one of the same name, or of the same Job."""
    return [pod for pod in pods if not any(_replaces(later, pod) for later in pods)]


def _replaces(later: TrackedPod, pod: TrackedPod) -> bool:
    over_at = pod.finished_at if pod.finished_at is not None else pod.seen_over_at
    same = later.name == pod.name or (later.controller is not None and later.controller == pod.controller)
    return same and later.uid != pod.uid and over_at is not None and later.created_at > over_at


def _failure_order(pod: TrackedPod) -> tuple[bool, bool, float, bool, str]:
    """Deletions last: controllers delete the other pods of a job after a failure, or stop them in the same second."""
    consequence, at, name = failure_order(_cause(pod), pod.finished_at, pod.name)
    return _cause(pod) in (DELETED, UNSEEN), consequence, at, _cause(pod) in _ASKED_TO_STOP, name


def _cause(pod: TrackedPod) -> str:
    return pod.why.cause if pod.why is not None else UNSEEN


def _report(
    job: TrackedJob,
    pods: Sequence[TrackedPod],
    decisive: TrackedPod,
    outcome: JobOutcome,
    why: Why,
    others: int,
    ended_at: float,
) -> JobEnding:
    started = [pod.started_at for pod in pods if pod.started_at is not None]
    over = outcome is not JobOutcome.NOT_STARTED
    return JobEnding(
        id=ending_id(job, "end" if over else "stuck"),
        key=job.key,
        outcome=outcome,
        namespace=job.namespace,
        job=job.name,
        kind=job.kind,
        user=job.user,
        queue=job.queue,
        why=why,
        pod=decisive.name,
        node=decisive.node,
        count=len(_last_attempt(pods)),
        others=others,
        started_at=min(started, default=None),
        ended_at=ended_at,
        gpu_seconds=_gpu_seconds(pods) if over else None,
    )


def _gpu_seconds(pods: Sequence[TrackedPod]) -> float | None:
    times = [
        pod.gpus * max(0.0, pod.finished_at - pod.started_at)
        for pod in pods
        if pod.gpus and pod.started_at is not None and pod.finished_at is not None
    ]
    return sum(times) if times else None
