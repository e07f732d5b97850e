"""gpu-ghost: a GPU has used memory or reports utilization, but no process runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.lib import gpus
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

CAUSES = ("memory-leak", "latched-utilisation")
LEAK, LATCHED = CAUSES


@dataclass(frozen=True)
class Limits:
    """How long it has to persist: the driver takes a moment to clean up after a process."""

    after: Seconds = 300.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """GPUs in use without a process."""
    reports = gpus.reporting_agents(context)
    blind = gpus.find_blind_spots(context, reports, "gpu", "gpu_processes")
    ghosts = {gpus.gpu_key(gpu): gpu for gpu in gpus.gpus_in_state(context, GpuState.GHOST)}
    since = gpus.track_since(memory, {key: gpu.since for key, gpu in ghosts.items()}, blind, context.now)
    findings = []
    for key, gpu in ghosts.items():
        limits: Limits = context.limits.of(gpus.gpu_labels(gpu))
        if context.now - since[key] > limits.after:
            findings.append(_finding(gpu, since[key], context.now))
    return RuleResult(findings=tuple(findings), memory=since, blind=blind.scopes)


def _finding(gpu: GpuView, since: float, now: float) -> Finding:
    cause = LEAK if any(item.key == "memory-without-process" for item in gpu.evidence) else LATCHED
    holder = gpus.sole_holder(gpu)
    values = gpus.gpu_values(gpu) | {
        "bytes": gpu.memory_used_bytes or 0,
        "ratio": gpu.utilization_ratio or 0.0,
        "seconds": now - since,
    }
    return Finding(
        rule="gpu-ghost",
        severity=Severity.WARNING,
        cause=cause,
        labels=gpus.gpu_labels(gpu, holder),
        headline=Text(key=f"gpu-ghost.{cause}", values=values),
        evidence=gpus.owner_evidence(holder),
        advice=(Text(key=f"gpu-ghost.{cause}.advice", values=values),),
        since=since,
    )


RULE = Rule("gpu-ghost", Limits, CAUSES, whole_cluster(detect), SubjectKind.CLUSTER, suppressed_by=("node-down",))
