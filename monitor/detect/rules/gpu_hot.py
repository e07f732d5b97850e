"""gpu-hot: a GPU is throttled because it is too hot or its power supply requires it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib import gpus
from monitor.detect.visibility import label_value
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.gpu import GpuFact
from monitor.facts.text import Text, Value

CAUSES = ("thermal", "power-brake")
THERMAL, BRAKE = CAUSES
# Running at the power limit (sw_power_cap) is normal, and hw_slowdown alone does not state the cause.
REASONS = {"sw_thermal_slowdown": THERMAL, "hw_thermal_slowdown": THERMAL, "hw_power_brake_slowdown": BRAKE}
MEGAHERTZ = 1_000_000


@dataclass(frozen=True)
class Limits:
    """How long a GPU has to be throttled: a hot minute is harmless."""

    after: Seconds = 600.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """GPUs that have been throttled for a while."""
    reports = gpus.reporting_agents(context)
    blind = gpus.find_blind_spots(context, reports, "gpu")
    facts = gpus.gpu_facts(context)
    throttled = {key: cause for key, fact in facts.items() if (cause := _cause(fact)) is not None}
    keys = {key: f"{key[0]}/{key[1]}/{cause}" for key, cause in throttled.items()}
    since = gpus.track_since(memory, dict.fromkeys(keys.values()), blind, context.now)
    findings = []
    for key, cause in throttled.items():
        limits: Limits = context.limits.of({"node": key[0], "gpu": str(key[1])})
        if context.now - since[keys[key]] > limits.after:
            findings.append(_finding(key, cause, facts[key], since[keys[key]], context.now))
    unreadable = (key for key, fact in facts.items() if fact.throttle_reasons is None)
    scopes = (Scope(labels={"node": label_value(node), "gpu": str(gpu)}) for node, gpu in unreadable)
    return RuleResult(findings=tuple(findings), memory=since, blind=(*blind.scopes, *scopes))


def _cause(fact: GpuFact) -> str | None:
    """Why a GPU is throttled: heat before the power brake, which heat may trigger."""
    causes = {REASONS[reason] for reason in fact.throttle_reasons or () if reason in REASONS}
    return THERMAL if THERMAL in causes else next(iter(causes), None)


def _finding(key: tuple[str, int], cause: str, fact: GpuFact, since: float, now: float) -> Finding:
    values: dict[str, Value] = {"node": key[0], "gpu": key[1], "seconds": now - since}
    evidence = []
    if fact.temperature_celsius is not None:
        evidence.append(Text(key="gpu-hot.temperature", values={"celsius": fact.temperature_celsius}))
    if fact.power_watts is not None and fact.power_limit_watts is not None:
        power: dict[str, Value] = {"watts": round(fact.power_watts), "limit": round(fact.power_limit_watts)}
        evidence.append(Text(key="gpu-hot.power", values=power))
    if fact.sm_clock_hertz is not None:
        evidence.append(Text(key="gpu-hot.clock", values={"megahertz": round(fact.sm_clock_hertz / MEGAHERTZ)}))
    return Finding(
        rule="gpu-hot",
        severity=Severity.WARNING,
        cause=cause,
        labels={"node": label_value(key[0]), "gpu": str(key[1])},
        headline=Text(key=f"gpu-hot.{cause}", values=values),
        evidence=tuple(evidence),
        advice=(Text(key=f"gpu-hot.{cause}.advice", values=values),),
        since=since,
    )


RULE = Rule("gpu-hot", Limits, CAUSES, detect, suppressed_by=("node-down",))
