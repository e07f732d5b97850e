"""Kueue: stopped queues, workloads waiting for quota, and incomplete pod groups."""

from __future__ import annotations

import re

from monitor.explain.error_chain.causes import SchedulingCause
from monitor.explain.error_chain.scheduling import main_reason, parse_scheduling
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus, compact_number, pending_diagnosis
from monitor.explain.quote import quote
from monitor.explain.scheduler_says import reason_diagnosis
from monitor.facts.cluster_facts import KUEUE_GROUP, ClusterFacts
from monitor.facts.gpu_requests import main_resource
from monitor.facts.kube import KUEUE_QUEUE, ConditionFact, PodFact
from monitor.facts.queues import QueueFact, WorkloadFact
from monitor.facts.text import Text, Value

GATE = "kueue.x-k8s.io/admission"
# Waiting does not help against these.
_OTHER_REASONS = (
    SchedulingCause.QUEUE_TOPOLOGY,
    SchedulingCause.QUEUE_UNCOVERED,
    SchedulingCause.QUEUE_MISSING,
    SchedulingCause.QUEUE_CLOSED,
    SchedulingCause.TAINT,
    SchedulingCause.SELECTOR,
)
_UNKNOWN = SchedulingCause.OTHER
_ADVICE = {Key.KUEUE_NEVER: Key.KUEUE_NEVER_ADVICE, Key.KUEUE_UNCLEAR: Key.KUEUE_UNCLEAR_ADVICE}
_MORE_NEEDED = re.compile(r"for (\S+) in flavor ([^\s,]+), (\S+) more needed")
_NEVER = re.compile(r"for (\S+) in flavor ([^\s,]+)(?:,[^>]*> maximum capacity| in ClusterQueue)")


def held_back(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Why Kueue has not admitted a pending pod, or None."""
    workload = facts.workload_of(pod)
    if workload is None and GATE not in pod.scheduling_gates:
        return None
    name = (workload.queue if workload else None) or pod.labels.get(KUEUE_QUEUE)
    if diagnosis := queue_refuses(name, pod.namespace, facts):
        return diagnosis
    if workload is not None:
        return workload_waits(workload, facts)
    return _group_incomplete(pod, facts)


def queue_refuses(name: str | None, namespace: str, facts: ClusterFacts) -> PodDiagnosis | None:
    """Diagnosis if the LocalQueue is missing, or it or its ClusterQueue is stopped; else None."""
    if name is None:
        return None
    local = _queue("LocalQueue", name, namespace, facts)
    if local is None:
        if not any(queue.kind == "LocalQueue" for queue in facts.queues):
            return None  # queues are not visible
        values: dict[str, Value] = {"queue": name, "namespace": namespace}
        return _closed(Text(Key.QUEUE_MISSING, values), Text(Key.QUEUE_MISSING_ADVICE, values))
    cluster = _queue("ClusterQueue", local.parent or "", None, facts)
    for queue in (cluster, local):
        if queue is not None and queue.state in ("closed", "closing"):
            return _closed(_stopped(queue), Text(Key.QUEUE_CLOSED_KUEUE_ADVICE, {"object": _as_kubectl(queue)}))
    return None


def _queue(kind: str, name: str, namespace: str | None, facts: ClusterFacts) -> QueueFact | None:
    return next((q for q in facts.queues if q.kind == kind and q.name == name and q.namespace == namespace), None)


def _as_kubectl(queue: QueueFact) -> str:
    return f"{queue.kind} {queue.name}" + (f" -n {queue.namespace}" if queue.namespace else "")


def _stopped(queue: QueueFact) -> Text:
    if queue.message:
        return Text(Key.QUEUE_CLOSED_WHY, {"queue": queue.name, "why": quote(queue.message)})
    return Text(Key.QUEUE_CLOSED, {"queue": queue.name, "state": queue.state or "closed"})


def _closed(headline: Text, advice: Text) -> PodDiagnosis:
    return PodDiagnosis(PodStatus.PENDING, PendingCause.QUEUE_CLOSED, headline, advice=(advice,))


def workload_waits(workload: WorkloadFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """What a Workload waits for, or None once it is admitted."""
    if workload.phase in ("admitted", "finished"):
        return None
    if workload.active is False:
        values: dict[str, Value] = {"workload": workload.name, "namespace": workload.namespace}
        return pending_diagnosis(PendingCause.OTHER, Key.WORKLOAD_INACTIVE, Key.WORKLOAD_INACTIVE_ADVICE, values)
    evicted = _condition(workload, "Evicted")
    if evicted is not None and evicted.status and evicted.reason == "Preempted" and workload.phase == "evicted":
        return PodDiagnosis(
            PodStatus.PENDING,
            PendingCause.PRIORITY,
            Text(Key.WORKLOAD_PREEMPTED, {"message": quote(evicted.message)}),
            advice=(Text(Key.PRIORITY_ADVICE),),
        )
    if workload.phase == "reserved":
        values = {"workload": workload.name, "namespace": workload.namespace}
        return pending_diagnosis(PendingCause.OTHER, Key.WORKLOAD_CHECKS, Key.WORKLOAD_CHECKS_ADVICE, values)
    return _no_quota(workload, facts)


def _no_quota(workload: WorkloadFact, facts: ClusterFacts) -> PodDiagnosis:
    reserved = _condition(workload, "QuotaReserved")
    message = (reserved.message if reserved else None) or ""
    queue, values = workload.queue or "?", _quota_values(workload, message, facts)
    reason = main_reason(parse_scheduling(message))
    if reason is not None and reason.cause in _OTHER_REASONS:
        return reason_diagnosis(reason, values | {"name": values["cluster_queue"]}, message)
    headline = Key.KUEUE_UNCLEAR if message and reason is not None and reason.cause is _UNKNOWN else Key.KUEUE_WAITS
    if match := _MORE_NEEDED.search(message):
        headline, values = Key.KUEUE_SHORT, values | {"resource": match[1], "flavor": match[2], "more": match[3]}
    elif match := _NEVER.search(message):
        headline, values = Key.KUEUE_NEVER, values | {"resource": match[1], "flavor": match[2]}
    scheduler = (Text(Key.SCHEDULER_SAYS, {"message": quote(message)}),) if message else ()
    advice = _ADVICE.get(headline, Key.KUEUE_WAITS_ADVICE)
    books = (Text(Key.KUEUE_BOOKS, values),) if "limit" in values else ()
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.QUOTA,
        Text(headline, values),
        evidence=(*books, *scheduler),
        advice=(Text(advice, {"queue": queue, "cluster_queue": values["cluster_queue"]}),),
    )


def _quota_values(workload: WorkloadFact, message: str, facts: ClusterFacts) -> dict[str, Value]:
    local = _queue("LocalQueue", workload.queue or "", workload.namespace, facts)
    name = workload.cluster_queue or (local.parent if local else None)
    cluster = _queue("ClusterQueue", name or "", None, facts)
    values: dict[str, Value] = {"queue": workload.queue or "?", "cluster_queue": name or workload.queue or "?"}
    resource = main_resource(workload.requests, facts.resource) or facts.resource
    if cluster is not None and resource in cluster.guarantee and (resource in message or not message):
        values["resource"] = resource
        values["limit"] = compact_number(cluster.capacity.get(resource, cluster.guarantee[resource]))
        values["used"] = compact_number(cluster.allocated.get(resource, 0.0))
        values["needs"] = compact_number(workload.requests.get(resource, 0.0))
    return values


def _condition(workload: WorkloadFact, kind: str) -> ConditionFact | None:
    return next((condition for condition in workload.conditions if condition.type == kind), None)


def _group_incomplete(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis:
    """Kueue creates the Workload only once all pods of the group exist."""
    group = pod.labels.get(KUEUE_GROUP)
    if group is None:
        values: dict[str, Value] = {"queue": pod.labels.get(KUEUE_QUEUE) or "?"}
        return pending_diagnosis(PendingCause.OTHER, Key.WORKLOAD_NONE, Key.WORKLOAD_NONE_ADVICE, values)
    present = sum(
        member.namespace == pod.namespace and member.labels.get(KUEUE_GROUP) == group for member in facts.pods
    )
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.GANG_INCOMPLETE,
        Text(Key.GANG_KUEUE, {"group": group, "present": present}),
        advice=(Text(Key.GANG_KUEUE_ADVICE, {"group": group}),),
    )
