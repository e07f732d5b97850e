"""Failures of one job: the pod that failed first is the cause, the others are symptoms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from monitor.detect.base import RuleContext
from monitor.detect.lib.pods import pod_identity
from monitor.explain.crash import last_termination
from monitor.explain.first_failure import FailureOrder, failure_order
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

WINDOW_SECONDS = 600.0  # pods that fail later fail for reasons of their own, unless they only report a consequence
_MAX_EXPLAINED_PODS = 1000
_CRASH = "crash_"


def explain_by_first(findings: Sequence[Finding], context: RuleContext) -> Sequence[Finding]:
    """The findings; of each job with several failed pods, the first failure explains the others."""
    by_job: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        job = finding.labels.get("job")
        if job and finding.evidence and finding.evidence[0].key.startswith(_CRASH):
            by_job[finding.labels["namespace"], job].append(finding)
    causes = {}
    for failures in by_job.values():
        if len({finding.labels["pod"] for finding in failures}) > 1:
            cause = _first(failures, context.facts)
            causes[cause.key] = cause
    return [causes.get(finding.key, finding) for finding in findings]


def _first(failures: list[Finding], facts: ClusterFacts) -> Finding:
    """The first failure of a job, with the scopes of those that it explains."""
    pods = _pods_of(failures, facts)
    order = {finding.key: _order(finding, pods) for finding in failures}
    first = min(failures, key=lambda finding: order[finding.key])
    later = [finding for finding in failures if finding is not first and _follows(order[finding.key], order[first.key])]
    names = sorted({(finding.labels["namespace"], finding.labels["pod"]) for finding in later})
    names = [name for name in names if name[1] != first.labels["pod"]][:_MAX_EXPLAINED_PODS]
    scopes = tuple(Scope(labels={"namespace": namespace, "pod": pod}, rules=(first.rule,)) for namespace, pod in names)
    if not scopes:
        return first
    evidence = (*first.evidence, Text("pod-start-failed.others", {"count": len(scopes)}))
    return msgspec.structs.replace(first, explains=(*first.explains, *scopes), evidence=evidence)


def _follows(order: FailureOrder, first: FailureOrder) -> bool:
    return order[0] or order[1] - first[1] <= WINDOW_SECONDS


def _order(finding: Finding, pods: dict[tuple[str, str], PodFact]) -> FailureOrder:
    pod = pods.get((finding.labels["namespace"], finding.labels["pod"]))
    ends = (
        last_termination(status).finished_at
        for status in (pod.statuses if pod is not None else ())
        if status.name == finding.headline.values["container"]
    )
    cause = finding.evidence[0].key.replace("_", "-")
    return failure_order(cause, next(ends, None), str(finding.headline.values["pod"]))


def _pods_of(findings: Sequence[Finding], facts: ClusterFacts) -> dict[tuple[str, str], PodFact]:
    """Pods of the nodes of these findings, by their labels."""
    nodes = {str(finding.headline.values["node"]) for finding in findings}
    pods = (pod for node in nodes for pod in (*facts.bound.get(node, ()), *facts.finished.get(node, ())))
    return {(labels["namespace"], labels["pod"]): pod for pod in pods for labels in (pod_identity(pod),)}
