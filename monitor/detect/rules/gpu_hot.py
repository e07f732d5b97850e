"""gpu-hot: a card is slowed down because it is too hot, or because its power supply asks for it."""

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
# A card at its power limit (sw_power_cap) does what it is made for, and hw_slowdown alone does not say why.
REASONS = {"sw_thermal_slowdown": THERMAL, "hw_thermal_slowdown": THERMAL, "hw_power_brake_slowdown": BRAKE}
MEGAHERTZ = 1_000_000


@dataclass(frozen=True)
class Limits:
    """How long a card has to be slowed down: a hot minute is nothing."""

    after: Seconds = 600.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Find the cards that have been slowed down for a while."""
    reports = gpus.reporting_agents(context)
    blind = gpus.find_blind_spots(context, reports, "gpu")
    facts = gpus.gpu_facts(context)
    slowed = {place: cause for place, fact in facts.items() if (cause := _cause(fact)) is not None}
    keys = {place: f"{place[0]}/{place[1]}/{cause}" for place, cause in slowed.items()}
    since = gpus.track_since(memory, dict.fromkeys(keys.values()), blind, context.now)
    findings = []
    for place, cause in slowed.items():
        limits: Limits = context.limits.of({"node": place[0], "gpu": str(place[1])})
        if context.now - since[keys[place]] > limits.after:
            findings.append(_finding(place, cause, facts[place], since[keys[place]], context.now))
    mute = (place for place, fact in facts.items() if fact.throttle_reasons is None)
    scopes = (Scope(labels={"node": label_value(node), "gpu": str(gpu)}) for node, gpu in mute)
    return RuleResult(findings=tuple(findings), memory=since, blind=(*blind.scopes, *scopes))


def _cause(fact: GpuFact) -> str | None:
    """Return why a card is slowed down; heat before the brake, which heat may be the reason of."""
    causes = {REASONS[reason] for reason in fact.throttle_reasons or () if reason in REASONS}
    return THERMAL if THERMAL in causes else next(iter(causes), None)


def _finding(place: tuple[str, int], cause: str, fact: GpuFact, since: float, now: float) -> Finding:
    values: dict[str, Value] = {"node": place[0], "gpu": place[1], "seconds": now - since}
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
        labels={"node": label_value(place[0]), "gpu": str(place[1])},
        headline=Text(key=f"gpu-hot.{cause}", values=values),
        evidence=tuple(evidence),
        advice=(Text(key=f"gpu-hot.{cause}.advice", values=values),),
        since=since,
    )


RULE = Rule("gpu-hot", Limits, CAUSES, detect, suppressed_by=("node-down",))
