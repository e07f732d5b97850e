"""Runs all rules over one context: holds what cannot be known, and puts symptoms behind their causes. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from monitor.detect.base import Limits, Rule, RuleContext, RuleResult, symptoms_of, with_limits
from monitor.detect.lib.scopes import ScopeIndex
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text

RULE_BROKEN = "rule-broken"


class DetectionHistory(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules remember, by rule, and the findings of the last time. Saved, so that a restart forgets nothing."""

    memories: dict[str, Any] = msgspec.field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Detection:
    """All findings of one moment, and what to remember for the next."""

    findings: tuple[Finding, ...]
    history: DetectionHistory = field(default_factory=DetectionHistory)


def detect(
    rules: Sequence[Rule],
    limits: Mapping[str, Limits[Any]],
    context: RuleContext,
    history: DetectionHistory,
    prompt_only: bool = False,
) -> Detection:
    """Given the rules with their limits and what was remembered, return what is found now.

    If only the prompt rules are asked, the others' findings and memories stay as they are.
    """
    found: dict[str, Finding] = {}
    memories: dict[str, Any] = {}
    before: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in history.findings:
        before[finding.rule].append(finding)
    for rule in rules:
        own = limits.get(rule.rule) or Limits(rule.limits())
        if not own.enabled:
            continue
        memory, findings = history.memories.get(rule.rule), tuple(before[rule.rule])
        if rule.prompt or not prompt_only:
            detected = _run(rule, with_limits(context, own, symptoms_of(rule, rules)), memory)
            memory, findings = detected.memory, (*_held(findings, detected), *detected.findings)
        memories[rule.rule] = memory
        found.update((finding.key, finding) for finding in findings)
    findings = _explained(tuple(found[key] for key in sorted(found)))
    return Detection(findings, DetectionHistory(memories=memories, findings=findings))


def _run(rule: Rule, context: RuleContext, memory: Any) -> RuleResult:
    """Run one rule. One that breaks says so itself and costs the others nothing; what it last found is held."""
    try:
        return rule(context, memory)
    except Exception as error:  # a mistake in a rule must not hide what the others see
        broken = Finding(
            rule=rule.rule,
            severity=Severity.WARNING,
            cause=RULE_BROKEN,
            labels={"service": "gpuwarden"},
            headline=Text(key="rule-broken", values={"rule": rule.rule, "error": f"{type(error).__name__}: {error}"}),
            raw=repr(error),
        )
        return RuleResult(findings=(broken,), memory=memory, blind=(Scope(labels={}),))


def _held(before: Iterable[Finding], detected: RuleResult) -> Iterable[Finding]:
    """Yield what was found before about subjects of which nothing is known now."""
    blind = ScopeIndex((scope, True) for scope in detected.blind)
    for finding in before:
        if any(blind.covering(finding)):
            yield msgspec.structs.replace(finding, held=True)


def _explained(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Put each symptom behind the cause that explains it; a cause is never put behind what it explains itself."""
    causes = ScopeIndex((scope, finding) for finding in findings for scope in finding.explains)
    result = []
    for finding in findings:
        cause = next((each.key for each in causes.covering(finding) if not _mutual(each, finding)), None)
        same = finding.explained_by == cause
        result.append(finding if same else msgspec.structs.replace(finding, explained_by=cause))
    return tuple(result)


def _mutual(cause: Finding, finding: Finding) -> bool:
    return cause is finding or any(scope.covers(cause) for scope in finding.explains)
