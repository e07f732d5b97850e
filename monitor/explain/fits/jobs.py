"""Jobs that hold resources, and when they end according to earlier runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from monitor.explain.fits.model import Estimate, HeldBy
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact

MIN_RUNS = 5  # that took longer than the job has run so far; fewer do not support an estimate
MAX_NAMED_NODES = 16
LASTING_OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController")
_RUN_MARK = "0123456789-._"  # ends the names of the runs of one job
JobKey = tuple[str, str]  # namespace and name


@dataclass(frozen=True)
class Job:
    """Unfinished pods of one job that have a node."""

    key: JobKey
    pods: tuple[PodFact, ...]
    lasting: bool

    @property
    def terminating(self) -> bool:
        return all(pod.deletion_at is not None for pod in self.pods)

    @property
    def since(self) -> float | None:
        return min((pod.started_at for pod in self.pods if pod.started_at is not None), default=None)

    def amount(self, resource: str) -> float:
        """What the job holds of a resource."""
        return sum([pod.requests.get(resource, 0.0) for pod in self.pods])

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted({pod.node for pod in self.pods if pod.node is not None}))


def jobs_of(pods: Iterable[PodFact], facts: ClusterFacts) -> list[Job]:
    """The jobs of pods, by namespace and name."""
    grouped: defaultdict[JobKey, list[PodFact]] = defaultdict(list)
    for pod in pods:
        grouped[_key(pod, facts)].append(pod)
    return [Job(key, tuple(of_job), any(_lasts(pod, facts) for pod in of_job)) for key, of_job in grouped.items()]


def _key(pod: PodFact, facts: ClusterFacts) -> JobKey:
    owner = pod.owner.name if pod.owner is not None else None
    return pod.namespace, facts.identity(pod).job or owner or pod.name


def _lasts(pod: PodFact, facts: ClusterFacts) -> bool:
    """Whether the pod does not end by itself."""
    return facts.identity(pod).inference or (pod.owner is not None and pod.owner.kind in LASTING_OWNERS)


def held_by(job: Job, resource: str, facts: ClusterFacts, estimate: Estimate | None) -> HeldBy:
    """The job as an answer names it."""
    namespace, name = job.key
    return HeldBy(
        job=name,
        namespace=namespace,
        user=facts.user(job.pods[0]),
        gpus=job.amount(resource),
        nodes=job.nodes[:MAX_NAMED_NODES],
        pods=len(job.pods),
        since=job.since,
        terminating=job.terminating,
        lasting=job.lasting,
        estimate=estimate,
    )


class EarlierRuns:
    """How long finished pods ran, for estimates of when running jobs end."""

    def __init__(self, facts: ClusterFacts) -> None:
        self._facts = facts
        self._seconds: defaultdict[tuple[object, ...], list[float]] = defaultdict(list)
        for pods in facts.finished.values():
            for pod in pods:
                if (seconds := _duration(pod)) is not None:
                    self._seconds[self._alike(pod)].append(seconds)

    def estimate(self, job: Job, now: float) -> Estimate | None:
        """When the job ends, by earlier runs of a job of the same name, user and size that took longer than it has run.

        None if there are too few of them, or the job does not end by itself.
        """
        if job.lasting or job.since is None or len({self._alike(pod) for pod in job.pods}) != 1:
            return None
        elapsed = max(0.0, now - job.since)
        rest = sorted(seconds - elapsed for seconds in self._seconds[self._alike(job.pods[0])] if seconds > elapsed)
        if len(rest) < MIN_RUNS:
            return None
        return Estimate(seconds=median(rest), earliest=rest[0], latest=rest[-1], runs=len(rest))

    def _alike(self, pod: PodFact) -> tuple[object, ...]:
        namespace, name = _key(pod, self._facts)
        return namespace, name.rstrip(_RUN_MARK), self._facts.user(pod), tuple(sorted(pod.requests.items()))


def _duration(pod: PodFact) -> float | None:
    """How long a pod ran that has succeeded; None if that is not known."""
    ends = [status.finished_at for status in pod.statuses if not status.init and status.finished_at is not None]
    if pod.phase != "Succeeded" or pod.started_at is None or not ends:
        return None
    return max(0.0, max(ends) - pod.started_at)


def together(estimates: Sequence[Estimate | None]) -> Estimate | None:
    """When the last of several jobs ends; None unless that is known of each."""
    known = [estimate for estimate in estimates if estimate is not None]
    if not known or len(known) < len(estimates):
        return None
    return Estimate(
        seconds=max(each.seconds for each in known),
        earliest=max(each.earliest for each in known),
        latest=max(each.latest for each in known),
        runs=min(each.runs for each in known),
    )
