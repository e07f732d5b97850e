"""gpu-hot: a GPU is throttled because it is too hot or its power supply requires it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, UNKNOWN, Rule, RuleContext, RuleResult, Seconds, SubjectKind, lasting
from monitor.detect.lib.gpus import gpu_finding, gpu_labels
from monitor.detect.lib.node_conditions import same_fault
from monitor.detect.subjects import GpuSubject
from monitor.facts.cluster import GpuView
from monitor.facts.findings import Finding
from monitor.facts.gpu import GpuFact
from monitor.facts.text import Text

CAUSES = ("thermal", "power-brake")
THERMAL, BRAKE = CAUSES
# Running at the power limit (sw_power_cap) is normal, and hw_slowdown alone does not state the cause.
REASONS = {"sw_thermal_slowdown": THERMAL, "hw_thermal_slowdown": THERMAL, "hw_power_brake_slowdown": BRAKE}
MEGAHERTZ = 1_000_000


@dataclass(frozen=True)
class Limits:
    """How long a GPU has to be throttled: a hot minute is harmless."""

    after: Seconds = 600.0


def evaluate(gpu: GpuSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A GPU that has been throttled for a while."""
    if gpu.fact is None or gpu.fact.throttle_reasons is None:
        return UNKNOWN
    fact, cause = gpu.fact, _cause(gpu.fact)
    if cause is None:
        return NOTHING
    limits: Limits = context.limits.of(gpu_labels(gpu.view))
    return lasting(cause, limits.after, memory, now, lambda since: _finding(gpu.view, fact, cause, since))


def _cause(fact: GpuFact) -> str | None:
    """Why a GPU is throttled: heat before the power brake, which heat may trigger."""
    causes = {REASONS[reason] for reason in fact.throttle_reasons or () if reason in REASONS}
    return THERMAL if THERMAL in causes else next(iter(causes), None)


def _finding(gpu: GpuView, fact: GpuFact, cause: str, since: float) -> Finding:
    evidence = []
    if fact.temperature_celsius is not None:
        evidence.append(Text("gpu-hot.temperature", {"celsius": fact.temperature_celsius}))
    if fact.power_watts is not None and fact.power_limit_watts is not None:
        watts, limit = round(fact.power_watts), round(fact.power_limit_watts)
        evidence.append(Text("gpu-hot.power", {"watts": watts, "limit": limit}))
    if fact.sm_clock_hertz is not None:
        evidence.append(Text("gpu-hot.clock", {"megahertz": round(fact.sm_clock_hertz / MEGAHERTZ)}))
    explains = same_fault(gpu_labels(gpu), "gpu-throttled")
    return gpu_finding("gpu-hot", cause, gpu, None, {}, evidence=evidence, since=since, explains=explains)


RULE = Rule(
    "gpu-hot", Limits, CAUSES, evaluate, SubjectKind.GPU, needs=("gpu",), uses=("gpu",), suppressed_by=("node-down",)
)
