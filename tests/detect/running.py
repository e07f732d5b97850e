"""Runs one rule under the real engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Limits, Rule, RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory, SubjectState, UnitState
from monitor.detect.rules import RULES
from monitor.facts.findings import Finding


@dataclass(frozen=True)
class Evaluated:
    """Findings of a rule, and its memory by subject: "unit" or "unit key"."""

    findings: tuple[Finding, ...]
    memory: dict[str, Any]


def history_of(rule: Rule, memory: dict[str, Any] | None) -> DetectionHistory:
    """History in which a rule remembers something of some subjects: {"unit": ...} or {"unit key": ...}."""
    units: dict[str, dict[str, SubjectState]] = {}
    for name, remembered in (memory or {}).items():
        unit, _, key = name.partition(" ")
        units.setdefault(unit, {})[key] = SubjectState(memory=remembered)
    return DetectionHistory(units={rule.rule: {unit: UnitState(subjects=subjects) for unit, subjects in units.items()}})


def lasting_since(condition: str, since: float) -> dict[str, Any]:
    """What `monitor.detect.base.lasting` remembers."""
    return {"condition": condition, "since": since}


def evaluate(rule: Rule, context: RuleContext, memory: dict[str, Any] | None = None) -> Evaluated:
    """Evaluate all subjects of a rule, with the limits of the context if it has any."""
    own = Limits(rule.limits()) if context.limits.default is None else context.limits
    others = {other.rule: Limits(None, enabled=False) for other in RULES}
    rules = (*(other for other in RULES if other.rule != rule.rule), rule)  # the others determine its symptoms
    found = detect(rules, {**others, rule.rule: own}, context, history_of(rule, memory))
    after = {
        f"{unit} {key}".rstrip(): subject.memory
        for unit, state in found.history.units.get(rule.rule, {}).items()
        for key, subject in state.subjects.items()
        if subject.memory is not None
    }
    return Evaluated(found.findings, after)
