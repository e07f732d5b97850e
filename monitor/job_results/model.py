"""Pods of a job as far as its end depends on them, and how a job ended. Stored as JSON beside the outbox of alerts."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

from monitor.facts.base import Fact
from monitor.facts.text import Text

DELETED, UNSEEN, DEADLINE = "deleted", "unseen", "deadline"  # causes
# Causes of an end that the program has no part in, besides evictions.
INTERRUPTIONS = frozenset({DELETED, UNSEEN, "preempted", "node-lost"})
EVICTED = "evicted"  # and what begins with it


class PodEnd(StrEnum):
    """How a pod ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REMOVED = "removed"


class JobOutcome(StrEnum):
    """How a job ended; the values are rule names of its message."""

    FINISHED = "job-finished"
    FAILED = "job-failed"
    STOPPED = "job-stopped"
    NOT_STARTED = "job-not-started"


class Why(Fact, frozen=True, kw_only=True):
    """Why a pod ended, or cannot start: a cause, and its sentences."""

    cause: str
    headline: Text
    evidence: tuple[Text, ...] = ()
    advice: tuple[Text, ...] = ()


class TrackedPod(Fact, frozen=True, kw_only=True):
    """A pod of a job.

    `seen_over_at` is when its end was seen, `finished_at` when it happened. `why` explains the end or, until then, why
    it cannot start (since `stuck_at`) or is being removed. `controller` is the uid of its batch Job, `owned` says
    whether any controller may replace it. `reported`: a message about its end exists. `present`: Kubernetes has it.
    """

    uid: str
    name: str
    created_at: float
    node: str | None = None
    started_at: float | None = None
    finished_at: float | None = None
    seen_over_at: float | None = None
    end: PodEnd | None = None
    why: Why | None = None
    stuck_at: float | None = None
    gpus: float = 0
    controller: str | None = None
    owned: bool = False
    reported: bool = False
    present: bool = True

    @property
    def over(self) -> bool:
        return self.end is not None


class TrackedJob(Fact, frozen=True, kw_only=True):
    """A job whose owner wants to know how it ends. `stuck_reported`: they know that it does not start."""

    namespace: str
    name: str
    run: str = ""
    kind: str | None = None
    user: str | None = None
    queue: str | None = None
    pods: dict[str, TrackedPod] = msgspec.field(default_factory=dict)
    stuck_reported: bool = False

    @property
    def key(self) -> str:
        return job_key(self.namespace, self.name, self.run)

    @property
    def open_pods(self) -> tuple[TrackedPod, ...]:
        """Pods without a message about their end."""
        return tuple(pod for pod in self.pods.values() if not pod.reported)


class JobEnding(Fact, frozen=True, kw_only=True):
    """How a job ended. The `id` is the same in every replica, `key` is that of the job.

    `pod` decided it; `others` is the number of the other pods that failed. `gpu_seconds` None: it held no GPU.
    """

    id: str
    key: str
    outcome: JobOutcome
    namespace: str
    job: str
    kind: str | None = None
    user: str | None = None
    queue: str | None = None
    why: Why
    pod: str
    node: str | None = None
    count: int = 1
    others: int = 0
    started_at: float | None = None
    ended_at: float
    gpu_seconds: float | None = None


def job_key(namespace: str, name: str, run: str) -> str:
    """Key of a job; `run` tells the Jobs of a CronJob apart."""
    return f"{namespace}/{name}/{run}" if run else f"{namespace}/{name}"


def ending_id(job: TrackedJob, *parts: str) -> str:
    """Id of an end: of the job and its first open pod, which all replicas know."""
    first = min((pod.created_at, pod.uid) for pod in job.open_pods)
    text = "\n".join((job.key, first[1], *parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
