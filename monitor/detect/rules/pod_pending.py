"""pod-pending: pods of a job have been unscheduled for too long, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from monitor.detect.base import Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_values
from monitor.detect.lib.pending_answers import PendingAnswer, answer_for_pod, next_turn, shape_id, update_answers
from monitor.detect.lib.pods import advice_keys, raw_text
from monitor.explain.fit import gpus_in_words, requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause
from monitor.explain.pod import pod_reference
from monitor.facts.alert_identity import identifying_labels
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

NAME = "pod-pending"
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
    shape: str
    labels: dict[str, str]
    since: float


def evaluate(facts: ClusterFacts, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """Jobs whose pods have been unscheduled for too long. The memory holds the explanation of each shape of pod."""
    jobs, next_late = _overdue_jobs(context)
    oldest: dict[str, PodFact] = {}
    for job in sorted(jobs, key=lambda job: job.pod.created_at or 0.0):
        oldest.setdefault(job.shape, job.pod)
    answers = update_answers(oldest, memory, facts, now)
    findings, unexplained = [], []
    for job in jobs:
        answer = answers.get(job.shape)
        if answer is not None:
            findings.append(_finding(job, answer_for_pod(answer, job.pod), facts))
        else:  # keep its previous finding
            unexplained.append(Scope(labels=identifying_labels(NAME, job.labels)))
    due = (at for at in (next_turn(oldest, answers, len(facts.nodes), now), next_late) if at is not None)
    remembered = msgspec.to_builtins(answers) or None
    return RuleResult(tuple(findings), remembered, tuple(unexplained), min(due, default=None))


def _overdue_jobs(context: RuleContext) -> tuple[list[PendingJob], float | None]:
    """Jobs with overdue pods, and when the next pod becomes overdue."""
    overdue, next_late = [], list[float]()
    for (namespace, job), pods in sorted(_pending_by_job(context.facts).items()):
        owner = pod_reference(pods[0], context.facts)
        labels = label_values({"namespace": namespace, "job": job, "user": owner.user, "queue": owner.queue})
        limits: Limits = context.limits.of(labels)
        due = [((pod.created_at or 0.0) + limits.waiting, pod) for pod in pods]
        next_late += [at for at, _ in due if at > context.now]
        if late := [pod for at, pod in due if at <= context.now]:
            largest = min(late, key=lambda pod: (-requested_gpus(pod, context.facts), pod.created_at or 0.0, pod.name))
            since = min(pod.created_at or 0.0 for pod in late)
            overdue.append(PendingJob(late, largest, shape_id(largest, context.facts), labels, since))
    return overdue, min(next_late, default=None)


def _pending_by_job(facts: ClusterFacts) -> dict[tuple[str, str], list[PodFact]]:
    """Pending pods by namespace and job."""
    jobs = defaultdict[tuple[str, str], list[PodFact]](list)
    for pod in facts.pending_pods:
        if pod.created_at is not None:
            owner = pod.owner.name if pod.owner else pod.name
            jobs[pod.namespace, facts.identity(pod).job or owner].append(pod)
    return jobs


def _finding(job: PendingJob, answer: PendingAnswer, facts: ClusterFacts) -> Finding:
    pod, labels = job.pod, job.labels
    values: dict[str, Value] = {"job": labels.get("job", pod.name), "user": facts.user(pod)}
    values |= {"queue": labels.get("queue", pod.namespace), "count": len(job.pods), "gpus": gpus_in_words(pod, facts)}
    values |= {"pod": pod.name, "namespace": pod.namespace}
    says = (item.values.get("message") for item in answer.evidence if item.key == Key.SCHEDULER_SAYS.value)
    message = next(says, None)
    return make_finding(
        NAME, answer.cause, labels, values, evidence=answer.evidence,
        advice=(*answer.advice, Text("pod-pending.advice", values)), since=job.since,
        raw=raw_text(str(message)) if message else None,
    )  # fmt: skip


_VGPU = ("unfit", "card", "memory", "cores", "slots", "unregistered")
_DEVICE_CLAIM = ("claim", "claim-missing", "claim-driver", "class-missing")
ADVICE = {
    "no-single-node-fits": ("distribute", "smaller_workers", "distribute_later", "or_wait_for_node"),
    "not-enough-gpus": ("no_gpu_nodes_advice", "release_idle", "release_stuck", "wait_or_ask_less"),
    "quota": advice_keys(
        "queue-full",
        "queue-never",
        "kueue-waits",
        "kueue-never",
        "sched-queue-full",
        "sched-cluster-full",
        "sched-queue-uncovered",
        "sched-quota",
    ),
    "queue-closed": advice_keys(
        "queue-closed-volcano", "queue-closed-kueue", "queue-missing", "sched-queue-closed", "sched-queue-missing"
    ),
    "gang-incomplete": advice_keys("gang-missing", "gang-too-large", "gang-kueue", "sched-gang-incomplete"),
    "taint": advice_keys("taint", "taint-disk", "taint-trouble", "sched-taint", "sched-disk-pressure"),
    "selector": advice_keys("selector", "sched-selector"),
    "vgpu": advice_keys(*_VGPU, family="sched-vgpu-"),
    "device-claim": advice_keys(*_DEVICE_CLAIM, family="sched-device-"),
    "topology": advice_keys("sched-queue-topology"),
    "volume": advice_keys(
        "claim-missing", "claim-unbound", "volume-elsewhere", "volume-unavailable", "sched-volume-limit"
    ),
    "priority": advice_keys("priority", "waits-for-victims"),
    "overtaken": ("distribute", "wait_or_ask_less"),
    "unschedulable-other": advice_keys("uncordon", "node-back", "short-of", "short-of-pods", "no-scheduler", "gated"),
}
RULE = Rule(
    NAME, Limits, CAUSES, evaluate, SubjectKind.CLUSTER,
    uses=("pending_pods", "pod_groups", "workloads"), kube=("pods", "nodes"),
    suppressed_by=("node-down",), advice=ADVICE, latency=Latency("waiting"),
)  # fmt: skip
