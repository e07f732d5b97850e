"""image-pull: the image of a pod cannot be pulled; reported after the first failure, with the cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.lib.pods import pod_labels, pod_values, raw_text
from monitor.detect.lib.pulls import FailedPull, failed_pulls, with_known_cause
from monitor.explain.error_chain.causes import PullFailureCause
from monitor.explain.keys import Key
from monitor.explain.quote import MAX_QUOTE_CHARS
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

CAUSES = tuple(cause.value for cause in PullFailureCause)


@dataclass(frozen=True)
class Limits:
    """Failures before a pull is reported."""

    failures: int = 1


def evaluate(pod: PodFact, context: RuleContext, memory: Any, _now: float) -> RuleResult:
    """A pod waiting for images that failed to pull.

    Causes are remembered: between two attempts the kubelet only reports the back-off.
    """
    before, findings, messages = memory if isinstance(memory, dict) else {}, [], {}
    for failed in failed_pulls(pod, context.facts):
        pull = with_known_cause(failed, before.get(failed.image))
        if pull.has_cause:
            messages[pull.image] = raw_text(pull.diagnosis.message)
        finding = _finding(pull, context.facts)
        limits: Limits = context.limits.of(finding.labels)
        if (pull.event.count if pull.event else 1) >= limits.failures:
            findings.append(finding)
    return RuleResult(tuple(findings), messages or None)


def _finding(pull: FailedPull, facts: ClusterFacts) -> Finding:
    diagnosis, pod = pull.diagnosis, pull.pod
    values = pod_values(pod, facts, image=pull.image, container=pull.container, registry=pull.registry)
    values["host"] = diagnosis.host or pull.registry
    advice = Key[f"PULL_{diagnosis.cause.name}_ADVICE"]
    labels = pod_labels(pod, facts, image=pull.image, service=pull.registry)
    return make_finding(
        "image-pull", diagnosis.cause.value, labels, values, evidence=_evidence(pull),
        advice=(Text(advice, values),), since=pull.event.first_at if pull.event else None,
        raw=raw_text(diagnosis.message) or pull.reason,
    )  # fmt: skip


def _evidence(pull: FailedPull) -> list[Text]:
    reasons = []
    if pull.diagnosis.message:
        reasons.append(Text(Key.PULL_SAYS, {"message": raw_text(pull.diagnosis.message, MAX_QUOTE_CHARS) or ""}))
    if pull.event is not None and pull.event.count > 1:
        reasons.append(Text(Key.PULL_ATTEMPTS, {"count": pull.event.count}))
    return reasons


RULE = Rule(
    "image-pull", Limits, CAUSES, evaluate, SubjectKind.POD, kube=("pods",),
    suppressed_by=("registry-unreachable", "disk-full", "node-down"),
    advice={cause: (f"pull_{cause.replace('-', '_')}_advice",) for cause in CAUSES},
)  # fmt: skip
