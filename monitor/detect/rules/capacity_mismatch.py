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
from monitor.facts.gpu_requests import amount_value
from monitor.facts.gpu_resources import SHARED_GPU
from monitor.facts.text import Text, Value

CAUSES = ("device-plugin", "unhealthy-device")
PLUGIN, UNHEALTHY = CAUSES


@dataclass(frozen=True)
class Limits:
    """How long it has to persist: while a kubelet or device plugin restarts, a node has no GPUs."""

    after: Seconds = 300.0


def evaluate(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A node whose GPU counts differ."""
    resource = context.facts.resource
    counts = gpu_counts(node, resource)
    cause = _cause(node, counts, resource) if counts is not None else None
    if counts is None or cause is None:
        return NOTHING
    limits: Limits = context.limits.of({"node": node.name})
    capacity = amount_value(
        {SHARED_GPU if gpus_are_shared(node, counts, resource) else resource: counts.capacity}, resource
    )
    values: dict[str, Value] = {"node": node.name, "cards": counts.gpus, "capacity": capacity}
    values["allocatable"] = counts.allocatable
    return lasting(cause, limits.after, memory, now, lambda since: _finding(cause, values, since))


def _cause(node: NodeSubject, counts: GpuCounts, resource: str) -> str | None:
    """An unhealthy GPU, or else a device plugin that counts wrongly."""
    if counts.allocatable < counts.capacity:
        return UNHEALTHY
    if counts.capacity == counts.gpus or gpus_are_shared(node, counts, resource):
        return None
    return UNHEALTHY if counts.capacity > counts.gpus else PLUGIN


def _finding(cause: str, values: dict[str, Value], since: float) -> Finding:
    labels, evidence = {"node": label_value(str(values["node"]))}, (Text("capacity-mismatch.counts", values),)
    return make_finding("capacity-mismatch", cause, labels, values, evidence=evidence, since=since)


RULE = Rule(
    "capacity-mismatch", Limits, CAUSES, evaluate, SubjectKind.NODE,
    needs=("gpu",), uses=("gpu", "node", "pod_devices"), kube=("nodes",), suppressed_by=("node-down",),
)  # fmt: skip
