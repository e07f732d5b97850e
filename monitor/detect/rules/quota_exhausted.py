"""quota-exhausted: a namespace or queue uses all of its GPU quota while jobs wait in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_values
from monitor.detect.lib.quota_waiting import WaitingJob, queued_jobs, refused_jobs
from monitor.explain.model import compact_number
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.text import Text, Value

NAME = "quota-exhausted"
MAX_NAMED = 3


@dataclass(frozen=True)
class Limits:
    """How long a refusal counts as a waiting job: controllers retry at growing intervals."""

    refused: Seconds = 1800.0


@dataclass(frozen=True)
class GpuQuota:
    """A GPU limit: `scope` is "namespace" or "queue", `name` the subject, `quota` the object that defines it."""

    scope: str
    name: str
    quota: str
    used: float
    limit: float
    waiting: tuple[WaitingJob, ...]

    @property
    def is_exhausted(self) -> bool:
        """Whether a waiting job fits the limit but not what is left of it."""
        return any(job.gpus <= self.limit and self.used + job.gpus > self.limit for job in self.waiting)


def evaluate(facts: ClusterFacts, context: RuleContext, _memory: Any, now: float) -> RuleResult:
    """Exhausted quotas and queues in which jobs wait."""
    limits: Limits = context.limits.of({})
    exhausted: dict[tuple[str, str], GpuQuota] = {}
    for quota in (*_quotas(facts, now - limits.refused), *_queues(facts)):
        if quota.is_exhausted:
            exhausted.setdefault((quota.scope, quota.name), quota)
    holders = _gpus_by_user(facts) if exhausted else {}
    refusals = (job.refused_at for quota in exhausted.values() for job in quota.waiting if job.refused_at is not None)
    next_at = min((at + limits.refused for at in refusals), default=None)
    return RuleResult(tuple(_finding(quota, holders) for quota in exhausted.values()), next_at=next_at)


def _quotas(facts: ClusterFacts, refused_since: float) -> Iterable[GpuQuota]:
    keys = (f"requests.{facts.resource}", facts.resource, f"limits.{facts.resource}")
    limited = [(quota, key) for quota in facts.quotas for key in keys if key in quota.hard]
    if not limited:
        return
    denied = refused_jobs({quota.namespace for quota, _ in limited}, facts, refused_since)
    for quota, key in limited:
        waits = tuple(denied.get((quota.namespace, quota.name), ()))
        yield GpuQuota("namespace", quota.namespace, quota.name, quota.used.get(key, 0.0), quota.hard[key], waits)


def _queues(facts: ClusterFacts) -> Iterable[GpuQuota]:
    waiting = queued_jobs(facts) if facts.queues else {}
    for queue in facts.queues:
        limit = queue.capacity.get(facts.resource, queue.guarantee.get(facts.resource))
        if queue.kind != "LocalQueue" and limit is not None:
            used, waits = queue.allocated.get(facts.resource, 0.0), tuple(waiting.get((queue.kind, queue.name), ()))
            yield GpuQuota("queue", queue.name, queue.name, used, limit, waits)


def _gpus_by_user(facts: ClusterFacts) -> dict[tuple[str, str], Counter[str]]:
    """GPUs by user, for each namespace and queue."""
    parents = {(q.namespace, q.name): q.parent for q in facts.queues if q.kind == "LocalQueue" and q.parent}
    held: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for pods in facts.bound.values():
        for pod in pods:
            gpus = round(pod.requests.get(facts.resource, 0.0))
            if gpus:
                queue = facts.identity(pod).queue or ""
                held["namespace", pod.namespace][facts.user(pod)] += gpus
                held["queue", parents.get((pod.namespace, queue), queue)][facts.user(pod)] += gpus
    return held


def _finding(quota: GpuQuota, holders: dict[tuple[str, str], Counter[str]]) -> Finding:
    values: dict[str, Value] = {"name": quota.name, "quota": quota.quota, "used": compact_number(quota.used)}
    values |= {"limit": compact_number(quota.limit), "count": len(quota.waiting)}
    values |= {"needs": compact_number(sum(job.gpus for job in quota.waiting))}
    values |= {"jobs": ", ".join(sorted({job.name for job in quota.waiting})[:MAX_NAMED])}
    evidence = [Text(f"{NAME}.waiting", values)]
    if top := holders.get((quota.scope, quota.name), Counter[str]()).most_common(MAX_NAMED):
        evidence.append(Text(f"{NAME}.holders", {"holders": ", ".join(f"{user} ({gpus})" for user, gpus in top)}))
    labels = label_values({quota.scope: quota.name})
    return make_finding(NAME, NAME, labels, values, key=f"{NAME}.{quota.scope}", evidence=evidence)


VOLCANO = ("queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh")
KUEUE = ("clusterqueues.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io", "workloads.kueue.x-k8s.io")
RULE = Rule(
    NAME, Limits, (), evaluate, SubjectKind.CLUSTER,
    uses=("pods", "events", "quotas", "queues", "pod_groups", "workloads"),
    kube=("pods", "resourcequotas", *VOLCANO, *KUEUE),
)  # fmt: skip
