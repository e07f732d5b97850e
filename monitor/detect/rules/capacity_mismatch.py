"""capacity-mismatch: driver, device plugin and kubelet disagree on the number of GPUs of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Rule, RuleContext, RuleResult, Seconds, SubjectKind, lasting
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value
from monitor.detect.lib.gpu_counts import GpuCounts, gpu_counts, gpus_are_shared
from monitor.detect.subjects import NodeSubject
from monitor.facts.findings import Finding
from monitor.facts.text import Text, Value

CAUSES = ("device-plugin", "unhealthy-device")
PLUGIN, UNHEALTHY = CAUSES


@dataclass(frozen=True)
class Limits:
    """How long it has to persist: while a kubelet or device plugin restarts, a node has no GPUs."""

    after: Seconds = 300.0


def evaluate(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A node whose GPU counts differ."""
    counts = gpu_counts(node)
    cause = _cause(node, counts, context.facts.resource) if counts is not None else None
    if counts is None or cause is None:
        return NOTHING
    limits: Limits = context.limits.of({"node": node.name})
    return lasting(cause, limits.after, memory, now, lambda since: _finding(node.name, cause, counts, since))


def _cause(node: NodeSubject, counts: GpuCounts, resource: str) -> str | None:
    """An unhealthy GPU, or else a device plugin that counts wrongly."""
    if counts.allocatable < counts.capacity:
        return UNHEALTHY
    if counts.capacity == counts.gpus or gpus_are_shared(node, counts, resource):
        return None
    return UNHEALTHY if counts.capacity > counts.gpus else PLUGIN


def _finding(node: str, cause: str, counts: GpuCounts, since: float) -> Finding:
    values: dict[str, Value] = {"node": node, "cards": counts.gpus, "capacity": counts.capacity}
    values["allocatable"] = counts.allocatable
    labels, evidence = {"node": label_value(node)}, (Text("capacity-mismatch.counts", values),)
    return make_finding("capacity-mismatch", cause, labels, values, evidence=evidence, since=since)


RULE = Rule(
    "capacity-mismatch", Limits, CAUSES, evaluate, SubjectKind.NODE,
    needs=("gpu",), uses=("gpu", "node", "pod_devices"), kube=("nodes",), suppressed_by=("node-down",),
)  # fmt: skip
