"""Follows the pods of jobs whose owners want to know how they end. A change costs what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from monitor.explain.pod import pod_reference
from monitor.facts.changes import Changes
from monitor.facts.cluster import Identity
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import JobFact, OwnerFact, PodFact
from monitor.job_results.endings import Controllers, JobDecision, decide
from monitor.job_results.model import JobEnding, PodEnd, TrackedJob, TrackedPod, job_key
from monitor.job_results.pods import finish_time, tracked_pod, vanished_pod
from monitor.job_results.settings import JobResultSettings

MAX_LATE_SECONDS = 24 * 3600.0  # an end that is seen later, after the daemon was down, is not reported
MAX_PODS = 2000  # of a job, with those that are gone: beyond, the earliest are forgotten
PODS, JOBS = "pods", "jobs.batch"

OwnerOf = Callable[[str], OwnerFact | None]


@dataclass(frozen=True)
class TrackedChanges:
    """Ends since the last call, and the keys of jobs that have changed."""

    endings: tuple[JobEnding, ...] = ()
    changed: frozenset[str] = frozenset()


class JobTracker:
    """Used from one thread at a time. `since`: what ended before is not reported."""

    def __init__(self, settings: JobResultSettings, jobs: Iterable[TrackedJob], since: float) -> None:
        self._settings = settings
        self._since = since
        self.jobs = {job.key: job for job in jobs}
        self._key_of = {uid: key for key, job in self.jobs.items() for uid in job.pods}
        self._due = dict.fromkeys(self.jobs, 0.0)  # jobs to decide about, by key
        self._everything = True
        self._last: dict[str, PodFact] = {}  # last versions of pods that are gone
        self._changed: set[str] = set()

    def follow(
        self, facts: ClusterFacts, changes: Changes, gone: Mapping[str, PodFact], owner: OwnerOf, now: float
    ) -> TrackedChanges:
        """Take over changes of the facts, and decide about the jobs that they concern or that are due."""
        self._last |= gone
        unseen = {source.name for source in facts.sources if not source.ok}
        if not unseen.isdisjoint(("kubernetes", PODS)):
            self._everything = True  # what is missing now is not gone
            return TrackedChanges()
        everything, self._everything = self._everything or changes.complete, False
        for uid in {*facts.pod_by_uid, *self._key_of} if everything else changes.pods:
            self._note(uid, facts, now)
        if everything:
            self._last.clear()
        endings = tuple(self._decide_due(facts, owner, JOBS not in unseen, now))
        changed, self._changed = frozenset(self._changed), set()
        return TrackedChanges(endings, changed)

    def _note(self, uid: str, facts: ClusterFacts, now: float) -> None:
        pod, last = facts.pod_by_uid.get(uid), self._last.pop(uid, None)
        key = self._key_of.get(uid)
        if pod is not None:
            key = key or self._key_for(pod, facts)
            if key is not None:
                self._put(key, tracked_pod(pod, facts, self.jobs[key].pods.get(uid), now), now)
        elif key is not None:
            before = self.jobs[key].pods[uid]
            if before.reported:
                self._drop(key, uid)
            elif before.present:
                self._put(key, vanished_pod(before, last, facts, now), now)

    def _key_for(self, pod: PodFact, facts: ClusterFacts) -> str | None:
        """Key of the job of a new pod, if its end is to be reported."""
        who, reference = facts.identity(pod), pod_reference(pod, facts)
        if not self._settings.wants(pod, who, reference):
            return None
        if pod.finished and (finish_time(pod) or 0.0) < self._since:
            return None
        name, run = who.job or pod.name, _run_of(pod, who)
        key = job_key(pod.namespace, name, run)
        known = self.jobs.get(key) or TrackedJob(namespace=pod.namespace, name=name, run=run)
        if not known.open_pods:
            known = replace(known, stuck_reported=False)
        self.jobs[key] = replace(known, kind=who.workload_kind, user=reference.user, queue=reference.queue)
        return key

    def _put(self, key: str, pod: TrackedPod, now: float) -> None:
        job = self.jobs[key]
        self._key_of[pod.uid] = key
        if job.pods.get(pod.uid) != pod:
            pods = {**job.pods, pod.uid: pod}
            if len(pods) > MAX_PODS and (old := next((other for other in pods.values() if not other.present), None)):
                del pods[old.uid], self._key_of[old.uid]
            self._replace(replace(job, pods=pods))
            self._due[key] = now

    def _drop(self, key: str, uid: str) -> None:
        """Forget a pod, and its job with the last one."""
        del self._key_of[uid]
        job = self.jobs[key]
        pods = {other: pod for other, pod in job.pods.items() if other != uid}
        if pods:
            self._replace(replace(job, pods=pods))
        else:
            del self.jobs[key]
            self._due.pop(key, None)
            self._changed.add(key)

    def _replace(self, job: TrackedJob) -> None:
        self.jobs[job.key] = job
        self._changed.add(job.key)

    def _decide_due(self, facts: ClusterFacts, owner: OwnerOf, jobs_known: bool, now: float) -> Iterable[JobEnding]:
        for key in [key for key, at in self._due.items() if at <= now]:
            self._refresh(key, facts, now)
            job = self.jobs[key]
            decision = decide(job, _controllers(job, owner, jobs_known=jobs_known), now)
            self._schedule(key, decision)
            if all(pod.over for pod in job.open_pods) and decision.check_at is None:
                self._close(job)
            elif decision.ending is not None:
                self._replace(replace(job, stuck_reported=True))
            if decision.ending is not None and now - decision.ending.ended_at <= MAX_LATE_SECONDS:
                yield decision.ending

    def _schedule(self, key: str, decision: JobDecision) -> None:
        if decision.check_at is None:
            self._due.pop(key)
        else:
            self._due[key] = decision.check_at

    def _refresh(self, key: str, facts: ClusterFacts, now: float) -> None:
        """Look again at what is not explained by the pod alone: a log that was read since, or a node that is silent."""
        for before in self.jobs[key].open_pods:
            pod = facts.pod_by_uid.get(before.uid)
            if pod is not None and (before.end is PodEnd.FAILED or before.why is not None):
                after = tracked_pod(pod, facts, before, now)
                if after != before:
                    job = self.jobs[key]
                    self._replace(replace(job, pods={**job.pods, after.uid: after}))

    def _close(self, job: TrackedJob) -> None:
        """Keep of the pods with a message only those that Kubernetes still has."""
        kept = {uid: replace(pod, reported=True) for uid, pod in job.pods.items() if pod.present}
        for uid in job.pods.keys() - kept.keys():
            del self._key_of[uid]
        if kept:
            self._replace(replace(job, pods=kept))
        else:
            del self.jobs[job.key]
            self._changed.add(job.key)


def _run_of(pod: PodFact, who: Identity) -> str:
    """The Jobs of a CronJob have one name, but each is a run of its own."""
    is_run = who.workload_kind == "CronJob" and pod.owner is not None
    return (pod.owner.uid or "") if is_run and pod.owner is not None else ""


def _controllers(job: TrackedJob, owner: OwnerOf, *, jobs_known: bool) -> Controllers:
    uids = {pod.controller for pod in job.open_pods if pod.controller is not None}
    found = {uid: fact for uid in uids if isinstance(fact := owner(uid), JobFact)}
    return Controllers(found, jobs_known)
