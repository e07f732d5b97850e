"""pod-stuck-terminating: a deleted pod still exists after its grace period."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import (
    ANY_CAUSE,
    Delay,
    Latency,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    whole_cluster,
)
from monitor.detect.lib.pods import blind_scopes, pod_labels, pod_values, raw_text
from monitor.explain.keys import Key
from monitor.explain.terminating import terminating
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Severity
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

CAUSES = ("finalizer", "node-down", "volume-busy", "d-state", "runtime-hung")
# Cause of the explanation -> cause of the finding; any other one is runtime-hung.
_CAUSES = {
    "finalizer": "finalizer",
    "node-gone": "node-down",
    "node-not-ready": "node-down",
    "volume": "volume-busy",
    "hung-mount": "volume-busy",
    "stuck-process": "d-state",
}


@dataclass(frozen=True)
class Limits:
    """Time beyond the grace period."""

    overdue: Seconds = 300.0


def detect(context: RuleContext, _memory: Any) -> RuleResult:
    """Deleted pods that still exist."""
    findings = []
    for pod in context.facts.pods:
        if pod.deletion_at is None:
            continue
        limits: Limits = context.limits.of({"node": pod.node or "", "namespace": pod.namespace})
        # The API server has already added the grace period.
        if context.now - pod.deletion_at > limits.overdue:
            findings.append(_finding(pod, pod.deletion_at, context.facts, context.now))
    return RuleResult(tuple(findings), None, blind_scopes(context))


def _finding(pod: PodFact, deletion_at: float, facts: ClusterFacts, now: float) -> Finding:
    answer = terminating(pod, facts, now)
    cause = _CAUSES.get(answer.cause, "runtime-hung")
    values = pod_values(pod, facts, seconds=now - deletion_at)
    evidence = (answer.headline, *answer.evidence)
    message = next((str(item.values["message"]) for item in evidence if item.key == Key.RUNTIME_SAYS.value), None)
    return Finding(
        rule="pod-stuck-terminating",
        severity=Severity.WARNING,
        cause=cause,
        labels=pod_labels(pod, facts),
        headline=Text(key=f"pod-stuck-terminating.{cause}", values=values),
        evidence=evidence,
        advice=(*answer.advice, Text(key="pod-stuck-terminating.advice", values=values)),
        since=deletion_at,
        raw=raw_text(message),
    )


# Keys of the advice that monitor.explain gives for a cause.
ADVICE = {
    "finalizer": ("term_finalizer_advice",),
    "node-down": ("term_node_not_ready_advice", "term_force_advice"),
    "volume-busy": ("term_volume_advice", "mount_hung_advice"),
    "d-state": ("term_process_advice",),
    "runtime-hung": ("term_unknown_advice",),
}
RULE = Rule(
    "pod-stuck-terminating",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("mount-lost", "node-down"),
    advice=ADVICE,
    latency={ANY_CAUSE: Latency("overdue", Delay.GRACE_PERIOD)},
)
