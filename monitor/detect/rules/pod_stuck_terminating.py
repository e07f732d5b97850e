"""pod-stuck-terminating: a deleted pod still exists after its grace period."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Delay, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.lib.pods import REFRESH_SECONDS, pod_labels, pod_values, raw_text
from monitor.explain.keys import Key
from monitor.explain.terminating import terminating
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

CAUSES = ("finalizer", "node-down", "volume-busy", "d-state", "runtime-hung")
# Cause of the explanation -> cause of the finding; any other one is runtime-hung.
_CAUSES = {
    "finalizer": "finalizer", "node-gone": "node-down", "node-not-ready": "node-down", "volume": "volume-busy",
    "hung-mount": "volume-busy", "stuck-process": "d-state",
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """Time beyond the grace period."""

    overdue: Seconds = 300.0


def evaluate(pod: PodFact, context: RuleContext, _memory: Any, now: float) -> RuleResult:
    """A deleted pod that still exists. `deletion_at` is the end of its grace period."""
    if pod.deletion_at is None:
        return NOTHING
    limits: Limits = context.limits.of({"node": pod.node or "", "namespace": pod.namespace})
    if now - pod.deletion_at < limits.overdue:
        return RuleResult(next_at=pod.deletion_at + limits.overdue)
    return RuleResult((_finding(pod, context.facts, now),), next_at=now + REFRESH_SECONDS)


def _finding(pod: PodFact, facts: ClusterFacts, now: float) -> Finding:
    answer = terminating(pod, facts, now)
    cause = _CAUSES.get(answer.cause, "runtime-hung")
    values = pod_values(pod, facts)
    evidence = (answer.headline, *answer.evidence)
    message = next((str(item.values["message"]) for item in evidence if item.key == Key.RUNTIME_SAYS.value), None)
    return make_finding(
        "pod-stuck-terminating", cause, pod_labels(pod, facts), values, evidence=evidence, since=pod.deletion_at,
        advice=(*answer.advice, Text("pod-stuck-terminating.advice", values)), raw=raw_text(message),
    )  # fmt: skip


# Keys of the advice that monitor.explain gives for a cause.
ADVICE = {
    "finalizer": ("term_finalizer_advice",), "node-down": ("term_node_not_ready_advice", "term_force_advice"),
    "volume-busy": ("term_volume_advice", "mount_hung_advice"), "d-state": ("term_process_advice",),
    "runtime-hung": ("term_unknown_advice",),
}  # fmt: skip
RULE = Rule(
    "pod-stuck-terminating", Limits, CAUSES, evaluate, SubjectKind.POD,
    refines=("agent", "node", "gpus", "gpu_processes", "mounts", "disk"), kube=("pods",),
    suppressed_by=("mount-lost", "node-down"), advice=ADVICE, latency=Latency("overdue", Delay.GRACE_PERIOD),
)  # fmt: skip
