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
from monitor.explain.quota_message import limited_resource
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.gpu_requests import amount_value, brief, gpu_amounts
from monitor.facts.gpu_resources import GPU_RESOURCE, resource_kind
from monitor.facts.text import Text, Value

NAME = "quota-exhausted"
MAX_NAMED = 3
Holdings = defaultdict[tuple[str, str, str], Counter[str]]  # scope, name and resource -> user -> amount


@dataclass(frozen=True)
class Limits:
    """How long a refusal counts as a waiting job: controllers retry at growing intervals."""

    refused: Seconds = 1800.0


@dataclass(frozen=True)
class GpuQuota:
    """A limit of GPUs or shares of them: `scope` is "namespace" or "queue", `quota` the object that defines it."""

    scope: str
    name: str
    quota: str
    resource: str
    used: float
    limit: float
    waiting: tuple[WaitingJob, ...]

    @property
    def is_exhausted(self) -> bool:
        """Whether a waiting job fits the limit but not what is left of it."""
        return any(job.gpus <= self.limit < self.used + job.gpus for job in self.waiting)


def evaluate(facts: ClusterFacts, context: RuleContext, _memory: Any, now: float) -> RuleResult:
    """Exhausted quotas and queues in which jobs wait."""
    limits: Limits = context.limits.of({})
    exhausted: dict[tuple[str, str], GpuQuota] = {}
    for quota in (*_quotas(facts, now - limits.refused), *_queues(facts)):
        if quota.is_exhausted:
            exhausted.setdefault((quota.scope, quota.name), quota)
    holders = _held_by_user(facts) if exhausted else Holdings(Counter)
    refusals = (job.refused_at for quota in exhausted.values() for job in quota.waiting if job.refused_at is not None)
    next_at = min((at + limits.refused for at in refusals), default=None)
    return RuleResult(tuple(_finding(quota, holders, facts) for quota in exhausted.values()), next_at=next_at)


def _quotas(facts: ClusterFacts, refused_since: float) -> Iterable[GpuQuota]:
    limited = [(quota, key) for quota in facts.quotas for key in _limits_gpus(quota.hard, facts)]
    if not limited:
        return
    denied = refused_jobs({quota.namespace for quota, _ in limited}, facts, refused_since)
    for quota, key in limited:
        resource, jobs = limited_resource(key), denied.get((quota.namespace, quota.name), ())
        waits = tuple(job for job in jobs if job.resource == resource)
        used, limit = quota.used.get(key, 0.0), quota.hard[key]
        yield GpuQuota("namespace", quota.namespace, quota.name, resource, used, limit, waits)


def _limits_gpus(names: Iterable[str], facts: ClusterFacts) -> list[str]:
    """Those of the limits that are about GPUs, the default resource first."""
    kinds = {name: limited_resource(name) for name in names}
    known = [name for name, kind in kinds.items() if kind == facts.resource or resource_kind(kind) is not None]
    return sorted(known, key=lambda name: (kinds[name] != facts.resource, kinds[name], name.startswith("limits.")))


def _queues(facts: ClusterFacts) -> Iterable[GpuQuota]:
    waiting = queued_jobs(facts) if facts.queues else {}
    for queue in facts.queues:
        limits = queue.guarantee | queue.capacity if queue.kind != "LocalQueue" else {}
        for resource in _limits_gpus(limits, facts):
            jobs = waiting.get((queue.kind, queue.name), ())
            waits = tuple(job for job in jobs if job.resource == resource)
            used = queue.allocated.get(resource, 0.0)
            yield GpuQuota("queue", queue.name, queue.name, resource, used, limits[resource], waits)


def _held_by_user(facts: ClusterFacts) -> Holdings:
    """GPUs by user, for each namespace and queue, and each resource."""
    parents = {(q.namespace, q.name): q.parent for q in facts.queues if q.kind == "LocalQueue" and q.parent}
    held: Holdings = defaultdict(Counter)
    for pods in facts.bound.values():
        for pod in pods:
            queue = facts.identity(pod).queue or ""
            for resource, amount in gpu_amounts(pod.requests, facts.resource).items():
                held["namespace", pod.namespace, resource][facts.user(pod)] += round(amount)
                held["queue", parents.get((pod.namespace, queue), queue), resource][facts.user(pod)] += round(amount)
    return held


def _finding(quota: GpuQuota, holders: Holdings, facts: ClusterFacts) -> Finding:
    resource = quota.resource
    counted = facts.gpu_nodes.unit if resource == GPU_RESOURCE else resource
    needs = sum(job.gpus for job in quota.waiting)
    values: dict[str, Value] = {"name": quota.name, "quota": quota.quota, "used": brief(resource, quota.used)}
    values |= {"limit": amount_value({counted: quota.limit}, facts.resource), "count": len(quota.waiting)}
    values |= {"needs": amount_value({counted: needs}, facts.resource)}
    values |= {"jobs": ", ".join(sorted({job.name for job in quota.waiting})[:MAX_NAMED])}
    evidence = [Text(f"{NAME}.waiting", values)]
    if top := holders.get((quota.scope, quota.name, resource), Counter[str]()).most_common(MAX_NAMED):
        named = ", ".join(f"{user} ({brief(resource, amount)})" for user, amount in top)
        evidence.append(Text(f"{NAME}.holders", {"holders": named}))
    labels = label_values({quota.scope: quota.name})
    return make_finding(NAME, NAME, labels, values, key=f"{NAME}.{quota.scope}", evidence=evidence)


VOLCANO = ("queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh")
KUEUE = ("clusterqueues.kueue.x-k8s.io", "localqueues.kueue.x-k8s.io", "workloads.kueue.x-k8s.io")
RULE = Rule(
    NAME, Limits, (), evaluate, SubjectKind.CLUSTER,
    uses=("pods", "events", "quotas", "queues", "pod_groups", "workloads"),
    kube=("pods", "resourcequotas", *VOLCANO, *KUEUE),
)  # fmt: skip
