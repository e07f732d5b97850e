"""pod-pending: pods of a job have been unscheduled for too long, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.lib.pending_answers import (
    PendingAnswer,
    answer_for_pod,
    load_answers,
    pod_shape,
    shape_id,
    update_answers,
)
from monitor.detect.lib.pods import EVERYTHING, blind_scopes, label_values, raw_text
from monitor.detect.visibility import resources_unavailable
from monitor.explain.fit import requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause
from monitor.explain.pod import pod_reference
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

CAUSES = tuple(cause.value for cause in PendingCause)


@dataclass(frozen=True)
class Limits:
    """How long a pod may be unscheduled."""

    waiting: Seconds = 600.0


@dataclass(frozen=True)
class PendingJob:
    """Overdue pods of a job. `pod` represents them: the one with the largest request."""

    pods: Sequence[PodFact]
    pod: PodFact
    labels: dict[str, str]
    since: float


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Jobs whose pods have been unscheduled for too long."""
    facts = context.facts
    if resources_unavailable(context, "pods", "nodes") and not facts.nodes:
        return RuleResult(memory=memory, blind=(EVERYTHING,))
    jobs = list(_pending_jobs(context))
    shapes = {shaped: shape_id(shaped) for shaped in {pod_shape(job.pod, facts) for job in jobs}}
    names = [shapes[pod_shape(job.pod, facts)] for job in jobs]
    oldest: dict[str, PodFact] = {}
    for name, job in sorted(zip(names, jobs, strict=True), key=lambda item: item[1].pod.created_at or 0.0):
        oldest.setdefault(name, job.pod)
    answers = update_answers(oldest, load_answers(memory), facts, context.now)
    findings, blind = [], [*blind_scopes(context)]
    for name, job in zip(names, jobs, strict=True):
        if name in answers:
            findings.append(_finding(job, answer_for_pod(answers[name], job.pod), facts, context.now))
        else:  # not explained yet: keep its previous finding
            blind.append(Scope(labels=job.labels))
    return RuleResult(tuple(findings), msgspec.to_builtins(answers), tuple(blind))


def _pending_jobs(context: RuleContext) -> Iterable[PendingJob]:
    """Jobs with overdue pods."""
    facts, jobs = context.facts, defaultdict[tuple[str, str], list[PodFact]](list)
    for pod in facts.pods:
        if pod.node is None and pod.deletion_at is None and pod.created_at is not None and not pod.finished:
            owner = pod.owner.name if pod.owner else pod.name
            jobs[pod.namespace, facts.identity(pod).job or owner].append(pod)
    for (namespace, job), pods in sorted(jobs.items()):
        owner_of_pod = pod_reference(pods[0], facts)
        labels = label_values(
            {"namespace": namespace, "job": job, "user": owner_of_pod.user, "queue": owner_of_pod.queue}
        )
        limits: Limits = context.limits.of(labels)
        late = [pod for pod in pods if context.now - (pod.created_at or context.now) > limits.waiting]
        if late:
            first = min(late, key=lambda pod: (-requested_gpus(pod, facts), pod.created_at or 0.0, pod.name))
            yield PendingJob(late, first, labels, min(pod.created_at or 0.0 for pod in late))


def _finding(job: PendingJob, answer: PendingAnswer, facts: ClusterFacts, now: float) -> Finding:
    values: dict[str, Value] = {
        "job": job.labels.get("job", job.pod.name),
        "user": facts.user(job.pod),
        "queue": job.labels.get("queue", job.pod.namespace),
        "count": len(job.pods),
        "gpus": requested_gpus(job.pod, facts),
        "seconds": now - job.since,
        "pod": job.pod.name,
        "namespace": job.pod.namespace,
    }
    message = next(
        (item.values.get("message") for item in answer.evidence if item.key == Key.SCHEDULER_SAYS.value), None
    )
    return Finding(
        rule="pod-pending",
        severity=Severity.WARNING,
        cause=answer.cause,
        labels=job.labels,
        headline=Text(key=f"pod-pending.{answer.cause}", values=values),
        evidence=answer.evidence,
        advice=(*answer.advice, Text(key="pod-pending.advice", values=values)),
        since=job.since,
        raw=raw_text(str(message)) if message else None,
    )


# Keys of the advice that monitor.explain gives for a cause.
ADVICE = {
    "no-single-node-fits": ("distribute", "smaller_workers", "distribute_later", "or_wait_for_node"),
    "not-enough-gpus": ("no_gpu_nodes_advice", "release_idle", "release_stuck", "wait_or_ask_less"),
    "quota": ("queue_full_advice", "queue_never_advice", "kueue_waits_advice", "kueue_never_advice"),
    "queue-closed": ("queue_closed_volcano_advice", "queue_closed_kueue_advice", "queue_missing_advice"),
    "gang-incomplete": ("gang_missing_advice", "gang_too_large_advice", "gang_kueue_advice"),
    "taint": ("taint_advice", "taint_disk_advice", "taint_trouble_advice"),
    "selector": ("selector_advice",),
    "volume": ("claim_missing_advice", "claim_unbound_advice", "volume_elsewhere_advice", "volume_unavailable_advice"),
    "priority": ("priority_advice", "waits_for_victims_advice"),
    "overtaken": ("distribute", "wait_or_ask_less"),
    "unschedulable-other": (
        "uncordon_advice",
        "node_back_advice",
        "short_of_advice",
        "short_of_pods_advice",
        "no_scheduler_advice",
        "gated_advice",
    ),
}
RULE = Rule(
    "pod-pending",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    advice=ADVICE,
    latency={ANY_CAUSE: Latency("waiting")},
)
