"""quota-exhausted: a namespace or queue has all the GPUs that it may have, and more work waits in it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib.pods import EVERYTHING, label_values
from monitor.detect.lib.quota_waiting import WaitingJob, refused_jobs, queued_jobs
from monitor.detect.visibility import resources_unavailable
from monitor.explain.reasons import whole
from monitor.facts.cluster_facts import World
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

CAUSES: tuple[str, ...] = ()
MAX_NAMED = 3


@dataclass(frozen=True)
class Limits:
    """How long a refusal counts as work that waits: controllers try again, at ever longer intervals."""

    refused: Seconds = 1800.0


@dataclass(frozen=True)
class GpuQuota:
    """A limit on GPUs: `scope` is "namespace" or "queue", `name` which, `quota` the object that says so."""

    scope: str
    name: str
    quota: str
    used: float
    limit: float
    waiting: tuple[WaitingJob, ...]

    @property
    def is_exhausted(self) -> bool:
        """Whether something waits that would have room if the others did not use theirs."""
        return any(each.gpus <= self.limit and self.used + each.gpus > self.limit for each in self.waiting)


def detect(situation: RuleContext, _memory: Any) -> RuleResult:
    """Find the quotas and queues that are used up while work waits in them."""
    found: dict[tuple[str, str], GpuQuota] = {}
    for book in (*_quotas(situation), *_queues(situation.world)):
        if book.is_exhausted:
            found.setdefault((book.scope, book.name), book)
    holders = _gpus_by_user(situation.world) if found else {}
    findings = tuple(_finding(book, holders) for book in found.values())
    blind = (EVERYTHING,) if resources_unavailable(situation, "pods", "resourcequotas", *_queue_sources(situation)) else ()
    return RuleResult(findings, None, blind)


def _queue_sources(situation: RuleContext) -> list[str]:
    """Return the sources that tell of queues, as far as the cluster has them."""
    view = situation.world.view
    names = [source.name for source in view.sources] if view else []
    return [name for name in names if name.endswith((".volcano.sh", ".kueue.x-k8s.io"))]


def _quotas(situation: RuleContext) -> Iterable[GpuQuota]:
    world = situation.world
    keys = (f"requests.{world.resource}", world.resource, f"limits.{world.resource}")
    limited = [(quota, key) for quota in world.quotas for key in keys if key in quota.hard]
    if not limited:
        return
    limits: Limits = situation.limits.of({})
    denied = refused_jobs({quota.namespace for quota, _ in limited}, world, situation.now - limits.refused)
    for quota, key in limited:
        waits = tuple(denied.get((quota.namespace, quota.name), ()))
        used = quota.used.get(key, 0.0)
        yield GpuQuota("namespace", quota.namespace, quota.name, used, quota.hard[key], waits)


def _queues(world: World) -> Iterable[GpuQuota]:
    waiting = queued_jobs(world) if world.queues else {}
    for queue in world.queues:
        limit = queue.capacity.get(world.resource, queue.guarantee.get(world.resource))
        if queue.kind != "LocalQueue" and limit is not None:
            used, waits = queue.allocated.get(world.resource, 0.0), tuple(waiting.get((queue.kind, queue.name), ()))
            yield GpuQuota("queue", queue.name, queue.name, used, limit, waits)


def _gpus_by_user(world: World) -> dict[tuple[str, str], Counter[str]]:
    """Return who has how many GPUs, by namespace and by queue."""
    parents = {(q.namespace, q.name): q.parent for q in world.queues if q.kind == "LocalQueue" and q.parent}
    held: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for pods in world.bound.values():
        for pod in pods:
            gpus = round(pod.requests.get(world.resource, 0.0))
            if gpus:
                queue = world.identity(pod).queue or ""
                held["namespace", pod.namespace][world.user(pod)] += gpus
                held["queue", parents.get((pod.namespace, queue), queue)][world.user(pod)] += gpus
    return held


def _finding(book: GpuQuota, holders: dict[tuple[str, str], Counter[str]]) -> Finding:
    values: dict[str, Value] = {
        "name": book.name,
        "quota": book.quota,
        "used": whole(book.used),
        "limit": whole(book.limit),
        "count": len(book.waiting),
        "needs": whole(sum(each.gpus for each in book.waiting)),
        "jobs": ", ".join(sorted({each.name for each in book.waiting})[:MAX_NAMED]),
    }
    top = holders.get((book.scope, book.name), Counter[str]()).most_common(MAX_NAMED)
    evidence = [Text(key="quota-exhausted.waiting", values=values)]
    if top:
        named = ", ".join(f"{user} ({gpus})" for user, gpus in top)
        evidence.append(Text(key="quota-exhausted.holders", values={"holders": named}))
    return Finding(
        rule="quota-exhausted",
        severity=Severity.WARNING,
        cause="quota-exhausted",
        labels=label_values({book.scope: book.name}),
        headline=Text(key=f"quota-exhausted.{book.scope}", values=values),
        evidence=tuple(evidence),
        advice=(Text(key=f"quota-exhausted.{book.scope}.advice", values=values),),
    )


RULE = Rule("quota-exhausted", Limits, CAUSES, detect)
