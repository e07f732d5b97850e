"""Whether queue and ResourceQuota admit a job, as far as their limits tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from monitor.explain import kueue, volcano
from monitor.explain.fit import MAX_ROUNDING_ERROR
from monitor.explain.fits.jobs import Job, jobs_of
from monitor.explain.fits.model import FitsRequest, Workers
from monitor.explain.fits.pods import MILLI_FACTOR
from monitor.explain.fits.release import jobs_of_amount
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, compact_number, pending_diagnosis
from monitor.explain.quota_message import limited_resource
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import Amounts, PodFact
from monitor.facts.queues import QueueFact, QuotaFact
from monitor.facts.text import Text, Value

MAX_QUEUE_DEPTH = 16  # of queues within queues
MAX_NAMED_QUEUES = 8
_COUNTS = ("pods", "count/pods")
_QUEUE_KINDS = ("VolcanoQueue", "LocalQueue", "ClusterQueue")


class Admission(StrEnum):
    """Whether a quota admits the job. The last of several in this order counts."""

    ADMITTED = "admitted"
    UNKNOWN = "unknown"
    FULL = "full"
    NEVER = "never"


class QuotaAnswer(NamedTuple):
    """What one queue or quota says. `jobs` have to finish first if it is full."""

    admission: Admission
    reason: Text | None = None
    evidence: tuple[Text, ...] = ()
    advice: tuple[Text, ...] = ()
    jobs: tuple[Job, ...] = ()


def admit(request: FitsRequest, workers: Sequence[Workers], facts: ClusterFacts) -> list[QuotaAnswer]:
    """Answers of the queue and of the quotas of the namespace that matter; none if they admit the job."""
    total = total_amounts(request, workers, facts)
    answers = chain(_queue(request, total, facts), _quotas(request, total, facts))
    return [answer for answer in answers if answer.admission is not Admission.ADMITTED or answer.evidence]


def total_amounts(request: FitsRequest, workers: Sequence[Workers], facts: ClusterFacts) -> Amounts:
    """What all pods request together."""
    total: Amounts = {request.resource or facts.resource: float(request.gpus)}
    if request.cpu_millicores is not None:
        total["cpu"] = sum(each.pods * (each.cpu_millicores or 0) for each in workers) / MILLI_FACTOR
    if request.memory_bytes is not None:
        total["memory"] = float(sum(each.pods * (each.memory_bytes or 0) for each in workers))
    total["pods"] = float(sum(each.pods for each in workers))
    return total


def _queue(request: FitsRequest, total: Amounts, facts: ClusterFacts) -> Iterator[QuotaAnswer]:
    if request.queue is None:
        return
    found = [
        queue
        for queue in facts.queues
        if queue.kind in _QUEUE_KINDS
        and queue.name == request.queue
        and (queue.namespace is None or request.namespace in (None, queue.namespace))
    ]
    found.sort(key=lambda queue: _QUEUE_KINDS.index(queue.kind))
    kinds = {(queue.kind, queue.parent) for queue in found}
    if not found:
        yield _no_queue(request.queue, facts)
    elif len(kinds) > 1 and found[0].kind == "LocalQueue" and request.namespace is None:
        yield _unknown(Key.FITS_QUEUE_AMBIGUOUS, {"queue": request.queue})
    elif found[0].kind == "VolcanoQueue":
        yield from _volcano(found[0], total, facts)
    else:
        yield from _kueue(found[0], total, facts)


def _no_queue(name: str, facts: ClusterFacts) -> QuotaAnswer:
    """A queue without limits that can be read, or a name that does not exist."""
    if any(identity.queue == name for identity in facts.identities.values()) or not facts.queues:
        return _unknown(Key.FITS_QUEUE_UNREAD, {"queue": name})
    names = sorted({queue.name for queue in facts.queues})
    listed = ", ".join(names[:MAX_NAMED_QUEUES]) + (" …" if len(names) > MAX_NAMED_QUEUES else "")
    return QuotaAnswer(Admission.NEVER, Text(Key.FITS_NO_QUEUE, {"queue": name, "queues": listed}))


def _unknown(key: Key, values: dict[str, Value]) -> QuotaAnswer:
    return QuotaAnswer(Admission.UNKNOWN, Text(key, values))


def _volcano(queue: QueueFact, total: Amounts, facts: ClusterFacts) -> Iterator[QuotaAnswer]:
    """The queue and those that contain it."""
    for each in _with_parents(queue, facts):
        for resource, amount in total.items():
            if diagnosis := volcano.queue_refuses(each, (resource, amount), facts):
                yield _refused(diagnosis, each, resource, amount, facts)
                if diagnosis.cause == PendingCause.QUEUE_CLOSED:
                    return
    waiting = [other.name for other in facts.queues if _competes(other, queue)]
    if waiting:
        listed = ", ".join(sorted(waiting)[:MAX_NAMED_QUEUES])
        yield QuotaAnswer(Admission.ADMITTED, evidence=(Text(Key.FITS_WEIGHTS, {"queues": listed}),))


def _competes(other: QueueFact, queue: QueueFact) -> bool:
    return other.kind == "VolcanoQueue" and other.name != queue.name and bool(other.pending)


def _with_parents(queue: QueueFact, facts: ClusterFacts) -> Iterator[QueueFact]:
    current: QueueFact | None = queue
    for _ in range(MAX_QUEUE_DEPTH):
        if current is None:
            return
        yield current
        parent = current.parent
        current = next((each for each in facts.queues if each.kind == queue.kind and each.name == parent), None)


def _refused(
    diagnosis: PodDiagnosis, queue: QueueFact, resource: str, amount: float, facts: ClusterFacts
) -> QuotaAnswer:
    limit = queue.capacity.get(resource)
    never = diagnosis.cause == PendingCause.QUEUE_CLOSED or limit is None or amount > limit
    missing = amount + queue.allocated.get(resource, 0.0) - (limit or 0.0)
    return QuotaAnswer(
        Admission.NEVER if never else Admission.FULL,
        diagnosis.headline,
        diagnosis.evidence,
        diagnosis.advice,
        () if never else _jobs_in({queue.name}, resource, missing, facts),
    )


def _jobs_in(queues: set[str], resource: str, missing: float, facts: ClusterFacts) -> tuple[Job, ...]:
    """Jobs of queues that hold the missing amount."""
    pods = [pod for pods in facts.bound.values() for pod in pods if facts.identity(pod).queue in queues]
    return tuple(jobs_of_amount(jobs_of(pods, facts), resource, missing))


def _kueue(queue: QueueFact, total: Amounts, facts: ClusterFacts) -> Iterator[QuotaAnswer]:
    """A LocalQueue with its ClusterQueue, or a ClusterQueue.

    Flavors restrict a job to some nodes, and are not read: room of other nodes does not count, so nothing is promised.
    """
    if queue.kind == "LocalQueue" and (diagnosis := kueue.queue_refuses(queue.name, queue.namespace or "", facts)):
        yield QuotaAnswer(Admission.NEVER, diagnosis.headline, diagnosis.evidence, diagnosis.advice)
        return
    cluster = queue
    if queue.kind == "LocalQueue":
        parents = (each for each in facts.queues if each.kind == "ClusterQueue" and each.name == queue.parent)
        found = next(parents, None)
        if found is None:
            yield _unknown(Key.FITS_QUEUE_UNREAD, {"queue": queue.name})
            return
        cluster = found
    names = {each.name for each in facts.queues if each.kind == "LocalQueue" and each.parent == cluster.name}
    for resource, amount in total.items():
        if resource in cluster.guarantee:
            yield from _cluster_queue(cluster, names | {queue.name}, resource, amount, facts)
        elif resource != "pods":
            yield _unknown(Key.FITS_UNCOVERED, {"queue": cluster.name, "resource": resource})
    yield _unknown(Key.FITS_FLAVORS, {"queue": cluster.name})


def _cluster_queue(
    queue: QueueFact, names: set[str], resource: str, amount: float, facts: ClusterFacts
) -> Iterator[QuotaAnswer]:
    used, own = queue.allocated.get(resource, 0.0), queue.guarantee[resource]
    limit = queue.capacity.get(resource)  # None: it may borrow any amount
    if limit is not None and used + amount > limit + MAX_ROUNDING_ERROR:
        diagnosis = volcano.over_limit(queue, resource, amount, used, limit, facts)
        jobs = _jobs_in(names, resource, used + amount - limit, facts) if amount <= limit else ()
        admission = Admission.FULL if amount <= limit else Admission.NEVER
        yield QuotaAnswer(admission, diagnosis.headline, diagnosis.evidence, diagnosis.advice, jobs)
        return
    values: dict[str, Value] = {"queue": queue.name, "resource": resource, "needs": compact_number(amount)}
    values |= {"used": compact_number(used), "limit": compact_number(own)}
    if used + amount > own + MAX_ROUNDING_ERROR or _is_lent(queue, resource, amount, facts):
        yield _unknown(Key.FITS_BORROWS, values)


def _is_lent(queue: QueueFact, resource: str, amount: float, facts: ClusterFacts) -> bool:
    """Whether other queues of the cohort use so much that this one cannot have its own quota at the moment."""
    if queue.parent is None:
        return False
    cohort = [each for each in facts.queues if each.kind == "ClusterQueue" and each.parent == queue.parent]
    used = sum(each.allocated.get(resource, 0.0) for each in cohort)
    return used + amount > sum(each.guarantee.get(resource, 0.0) for each in cohort) + MAX_ROUNDING_ERROR


def _quotas(request: FitsRequest, total: Amounts, facts: ClusterFacts) -> Iterator[QuotaAnswer]:
    for quota in facts.quotas:
        if quota.namespace == request.namespace:
            for entry, limit in sorted(quota.hard.items()):
                amount = total.get("pods" if entry in _COUNTS else limited_resource(entry), 0.0)
                used = quota.used.get(entry, 0.0)
                if amount and used + amount > limit + MAX_ROUNDING_ERROR:
                    yield _over_quota(quota, entry, amount, facts)


def _over_quota(quota: QuotaFact, entry: str, amount: float, facts: ClusterFacts) -> QuotaAnswer:
    used, limit = quota.used.get(entry, 0.0), quota.hard[entry]
    values: dict[str, Value] = {"quota": quota.name, "resource": entry, "needs": compact_number(amount)}
    values |= {"used": compact_number(used), "limit": compact_number(limit)}
    diagnosis = pending_diagnosis(PendingCause.QUOTA, Key.QUOTA_EXCEEDED, Key.QUOTA_EXCEEDED_ADVICE, values)
    if quota.scopes:  # which pods it counts is not decided here
        return QuotaAnswer(Admission.UNKNOWN, diagnosis.headline)
    if amount > limit + MAX_ROUNDING_ERROR:
        return QuotaAnswer(Admission.NEVER, diagnosis.headline, advice=diagnosis.advice)
    held = jobs_of(_in_namespace(quota.namespace, facts), facts)
    resource = limited_resource(entry)
    jobs = () if entry in _COUNTS else tuple(jobs_of_amount(held, resource, used + amount - limit))
    return QuotaAnswer(Admission.FULL, diagnosis.headline, advice=diagnosis.advice, jobs=jobs)


def _in_namespace(namespace: str, facts: ClusterFacts) -> Iterable[PodFact]:
    return (pod for pods in facts.bound.values() for pod in pods if pod.namespace == namespace)
