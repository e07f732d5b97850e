"""Explanations by name: a pod, a job with pods, or a job whose pods do not exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from monitor.explain import kueue, volcano
from monitor.explain.keys import Key
from monitor.explain.model import Explanation, PodDiagnosis, PodRef, PodStatus, compact_number
from monitor.explain.pod import explain_pod
from monitor.explain.quota_message import limited_resource, newest_denial, parse_denial
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_requests import brief
from monitor.facts.gpu_resources import resource_kind
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

UNKNOWN_NAME, PODS_UNSEEN = "unknown-name", "pods-unseen"  # causes
# Explanations of a job lead with its pod in the worst status.
WORST_FIRST = (
    PodStatus.CRASHING,
    PodStatus.PULLING,
    PodStatus.PENDING,
    PodStatus.CREATING,
    PodStatus.TERMINATING,
    PodStatus.SILENT,
    PodStatus.IDLE,
    PodStatus.RUNNING,
    PodStatus.FINISHED,
    PodStatus.NOT_CREATED,
    PodStatus.UNSEEN,
)


def explain_name(name: str, namespace: str | None, facts: ClusterFacts, now: float) -> Explanation:
    """Explanation of a pod or job by name; `namespace` None means any.

    Prefers a pod of that name, then the worst pod of the job of that name, then why the job has no pods. The cause is
    UNKNOWN_NAME if no such pod or job exists.
    """
    pods = _explain_all((pod for pod in facts.pods if pod.name == name and _in(pod.namespace, namespace)), facts, now)
    if pods:
        return pods[0]
    job = _explain_all(
        (p for p in facts.pods if _is_of_job(p, name, facts) and _in(p.namespace, namespace)), facts, now
    )
    if job and job[0].status not in (PodStatus.FINISHED, PodStatus.RUNNING):
        return _summarized(job)
    not_created = _refused(name, namespace, facts) or _queued(name, namespace, facts)
    if not_created is not None:
        return not_created
    return _summarized(job) if job else _unknown(name, namespace)


def _in(namespace: str | None, requested: str | None) -> bool:
    return requested is None or namespace == requested


def _is_of_job(pod: PodFact, name: str, facts: ClusterFacts) -> bool:
    return facts.identity(pod).job == name or (pod.owner is not None and pod.owner.name == name)


def _explain_all(pods: Iterable[PodFact], facts: ClusterFacts, now: float) -> list[Explanation]:
    explanations = [explain_pod(pod, facts, now) for pod in pods]
    return sorted(explanations, key=lambda explanation: (WORST_FIRST.index(explanation.status), explanation.pod.name))


def _summarized(explanations: list[Explanation]) -> Explanation:
    """The first of a job's explanations (worst first), with a summary of the others."""
    if len(explanations) == 1:
        return explanations[0]
    counts = Counter(explanation.status for explanation in explanations)
    states = ", ".join(f"{status.value} {counts[status]}" for status in WORST_FIRST if status in counts)
    summary = Text(Key.JOB_PODS, {"count": len(explanations), "states": states, "pod": explanations[0].pod.name})
    return replace(explanations[0], evidence=(*explanations[0].evidence, summary))


def _explanation(name: str, namespace: str | None, diagnosis: PodDiagnosis) -> Explanation:
    return replace(diagnosis, status=PodStatus.NOT_CREATED).explain(PodRef(namespace, name, job=name))


def _refused(name: str, namespace: str | None, facts: ClusterFacts) -> Explanation | None:
    """Why the API server rejects the pods of this job, or None."""
    known = {event_namespace or "" for _, event_namespace, _ in facts.events_by_name}
    for candidate in [namespace] if namespace is not None else sorted(known):
        event = newest_denial(name, candidate, facts)
        if event is None:
            continue
        denial = parse_denial(event.message or "")
        denied = limited_resource(str(denial.values.get("resource", "")))
        evidence = [*_quota_usage(denial.values.get("quota"), denied, candidate, facts)]
        evidence.append(Text(Key.REFUSED_TIMES, {"count": event.count, "kind": event.kind}))
        diagnosis = PodDiagnosis(
            PodStatus.NOT_CREATED, denial.cause, denial.headline, tuple(evidence), (denial.advice,)
        )
        return _explanation(name, candidate, diagnosis)
    return None


def _quota_usage(quota: object, denied: str, namespace: str | None, facts: ClusterFacts) -> Iterable[Text]:
    """Current usage of the quota, and the main GPU holders of the namespace."""
    resource = denied if resource_kind(denied) is not None else facts.resource
    for fact in facts.quotas:
        if fact.namespace != namespace or fact.name != quota:
            continue
        key = next((name for name in fact.hard if limited_resource(name) == resource), None)
        if key is not None:
            values = {
                "quota": fact.name,
                "used": compact_number(fact.used.get(key, 0.0)),
                "limit": compact_number(fact.hard[key]),
            }
            yield Text(Key.QUOTA_BOOKS, {**values, "resource": key})
    held: Counter[str] = Counter()
    for pods in facts.bound.values():
        for pod in pods:
            if quota is not None and pod.namespace == namespace:
                held[facts.identity(pod).user or pod.name] += round(pod.requests.get(resource, 0.0))
    top = [f"{user} ({brief(resource, count)})" for user, count in held.most_common(3) if count]
    if top:
        yield Text(Key.QUOTA_HOLDERS, {"namespace": namespace or "?", "holders": ", ".join(top)})


def _queued(name: str, namespace: str | None, facts: ClusterFacts) -> Explanation | None:
    """Diagnosis of a job whose pods are created only once its queue admits it, or None."""
    for workload in facts.workloads:
        names = (workload.name, workload.owner.name if workload.owner else "")
        if not _in(workload.namespace, namespace) or name not in names:
            continue
        diagnosis = kueue.queue_refuses(workload.queue, workload.namespace, facts)
        diagnosis = diagnosis or kueue.workload_waits(workload, facts)
        if diagnosis is not None:
            return _explanation(name, workload.namespace, diagnosis)
    for group in facts.pod_groups:
        if not _in(group.namespace, namespace) or name not in (group.name, group.owner.name if group.owner else ""):
            continue
        queue = next((q for q in facts.queues if q.kind == "VolcanoQueue" and q.name == group.queue), None)
        needed = facts.resource, group.min_resources.get(facts.resource, 0.0)
        diagnosis = volcano.queue_refuses(queue, needed, facts) if queue else None
        diagnosis = diagnosis or volcano.members_missing(group, facts)
        if diagnosis is not None:
            return _explanation(name, group.namespace, diagnosis)
    return None


def _unknown(name: str, namespace: str | None) -> Explanation:
    values: dict[str, Value] = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    headline = Text(Key.UNKNOWN_NAME_ANYWHERE if namespace is None else Key.UNKNOWN_NAME, values)
    advice = Text(Key.UNKNOWN_NAME_ADVICE, {"name": name})
    diagnosis = PodDiagnosis(PodStatus.NOT_CREATED, UNKNOWN_NAME, headline, advice=(advice,))
    return _explanation(name, namespace, diagnosis)


def explain_unseen(name: str, namespace: str | None, error: str) -> Explanation:
    """Explanation of a name while the pods of the cluster cannot be read, which does not make it unknown."""
    headline, advice = Text(Key.PODS_UNSEEN, {"error": error}), Text(Key.PODS_UNSEEN_ADVICE, {})
    return PodDiagnosis(PodStatus.UNSEEN, PODS_UNSEEN, headline, advice=(advice,)).explain(PodRef(namespace, name))
