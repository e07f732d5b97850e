"""capacity-mismatch: driver, device plugin and kubelet disagree on the number of GPUs of a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.labels import label_value
from monitor.detect.lib import gpus
from monitor.detect.lib.gpu_counts import GpuCounts, gpu_counts_by_node, gpus_are_shared
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

CAUSES = ("device-plugin", "unhealthy-device")
PLUGIN, UNHEALTHY = CAUSES


@dataclass(frozen=True)
class Limits:
    """How long it has to persist: while a kubelet or device plugin restarts, a node has no GPUs."""

    after: Seconds = 300.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Nodes whose GPU counts differ."""
    reports = gpus.reporting_agents(context)
    blind = gpus.find_blind_spots(context, reports, "gpu", kube=("nodes",))
    mismatches = {} if blind.everything else dict(_mismatches(context))
    since = gpus.track_since(
        memory, {f"{node}/{cause}": None for node, (cause, _) in mismatches.items()}, blind, context.now
    )
    findings = []
    for node, (cause, counts) in mismatches.items():
        limits: Limits = context.limits.of({"node": node})
        began = since[f"{node}/{cause}"]
        if context.now - began >= limits.after:
            findings.append(_finding(node, cause, counts, began, context.now))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _mismatches(context: RuleContext) -> Iterator[tuple[str, tuple[str, GpuCounts]]]:
    """Nodes whose counts differ: an unhealthy GPU, or else a device plugin that counts wrongly."""
    for node, counts in gpu_counts_by_node(context).items():
        if counts.allocatable < counts.capacity:
            yield node, (UNHEALTHY, counts)
        elif counts.capacity != counts.gpus and not gpus_are_shared(context, node, counts):
            yield node, (UNHEALTHY if counts.capacity > counts.gpus else PLUGIN, counts)


def _finding(node: str, cause: str, counts: GpuCounts, since: float, now: float) -> Finding:
    values: dict[str, Value] = {
        "node": node,
        "cards": counts.gpus,
        "capacity": counts.capacity,
        "allocatable": counts.allocatable,
        "seconds": now - since,
    }
    return Finding(
        rule="capacity-mismatch",
        severity=Severity.WARNING,
        cause=cause,
        labels={"node": label_value(node)},
        headline=Text(key=f"capacity-mismatch.{cause}", values=values),
        evidence=(Text(key="capacity-mismatch.counts", values=values),),
        advice=(Text(key=f"capacity-mismatch.{cause}.advice", values=values),),
        since=since,
    )


RULE = Rule(
    "capacity-mismatch", Limits, CAUSES, whole_cluster(detect), SubjectKind.CLUSTER, suppressed_by=("node-down",)
)
