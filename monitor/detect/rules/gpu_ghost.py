"""gpu-ghost: a GPU has used memory or reports utilization, but no process runs on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Rule, RuleContext, RuleResult, Seconds, SubjectKind, lasting
from monitor.detect.lib import gpu_cost, gpus
from monitor.detect.subjects import GpuSubject
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.findings import Finding

CAUSES = ("memory-leak", "latched-utilisation")
LEAK, LATCHED = CAUSES


@dataclass(frozen=True)
class Limits:
    """How long it has to persist: the driver takes a moment to clean up after a process."""

    after: Seconds = 300.0


def evaluate(gpu: GpuSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A GPU in use without a process."""
    view = gpu.view
    if view.state is not GpuState.GHOST:
        return NOTHING
    limits: Limits = gpus.gpu_limits(context, view)
    return lasting("ghost", limits.after, memory, now, lambda since: _finding(view, since, context), view.since)


def _finding(gpu: GpuView, since: float, context: RuleContext) -> Finding:
    cause = LEAK if any(item.key == "memory-without-process" for item in gpu.evidence) else LATCHED
    values = {"bytes": gpu.memory_used_bytes or 0, "ratio": gpu.utilization_ratio or 0.0}
    cost = gpu_cost.cost_so_far(context.prices, [gpu_cost.WastedGpu(gpu, since)])
    return gpus.gpu_finding("gpu-ghost", cause, gpu, gpus.sole_holder(gpu), values, evidence=cost, since=since)


RULE = Rule(
    "gpu-ghost",
    Limits,
    CAUSES,
    evaluate,
    SubjectKind.GPU,
    needs=("gpu", "gpu_processes"),
    refines=("gpus",),
    suppressed_by=("node-down",),
)
