"""Evaluates all rules: holds findings that cannot be verified and links symptoms to their causes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from monitor.detect.base import Limits, Rule, RuleContext, RuleResult, symptoms_of, with_limits
from monitor.detect.bounds import bounded_findings, limited_per_node
from monitor.detect.lib.scopes import ScopeIndex
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text

RULE_BROKEN = "rule-broken"


class DetectionHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of each rule and the findings of the last evaluation; persisted across restarts."""

    memories: dict[str, Any] = msgspec.field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Detection:
    """Findings of one evaluation and the history for the next."""

    findings: tuple[Finding, ...]
    history: DetectionHistory = field(default_factory=DetectionHistory)


def detect(
    rules: Sequence[Rule],
    limits: Mapping[str, Limits[Any]],
    context: RuleContext,
    history: DetectionHistory,
    prompt_only: bool = False,
) -> Detection:
    """Findings of the rules now.

    With `prompt_only`, findings and memory of all other rules stay unchanged.
    """
    findings_by_key: dict[str, Finding] = {}
    memories: dict[str, Any] = {}
    previous: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in history.findings:
        previous[finding.rule].append(finding)
    for rule in rules:
        rule_limits = limits.get(rule.rule) or Limits(rule.limits())
        if not rule_limits.enabled:
            continue
        memory, findings = history.memories.get(rule.rule), tuple(previous[rule.rule])
        if rule.prompt or not prompt_only:
            result = _run(rule, with_limits(context, rule_limits, symptoms_of(rule, rules)), memory)
            found = limited_per_node(rule.rule, bounded_findings(result.findings))
            memory, findings = result.memory, (*_held(findings, result), *found)
        memories[rule.rule] = memory
        findings_by_key.update((finding.key, finding) for finding in findings)
    findings = _explained(tuple(findings_by_key[key] for key in sorted(findings_by_key)))
    return Detection(findings, DetectionHistory(memories=memories, findings=findings))


def _run(rule: Rule, context: RuleContext, memory: Any) -> RuleResult:
    """Result of one rule. A rule that raises is reported as broken, and its previous findings are held."""
    try:
        return rule(context, memory)
    except Exception as error:  # a bug in one rule must not stop the others
        broken = Finding(
            rule=rule.rule,
            severity=Severity.WARNING,
            cause=RULE_BROKEN,
            labels={"service": "gpuwarden"},
            headline=Text(key="rule-broken", values={"rule": rule.rule, "error": f"{type(error).__name__}: {error}"}),
            raw=repr(error),
        )
        return RuleResult(findings=(broken,), memory=memory, blind=(Scope(labels={}),))


def _held(previous: Iterable[Finding], result: RuleResult) -> Iterable[Finding]:
    """Previous findings about subjects that the rule cannot observe now."""
    blind = ScopeIndex((scope, True) for scope in result.blind)
    for finding in previous:
        if any(blind.covering(finding)):
            yield msgspec.structs.replace(finding, held=True)


def _explained(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Set `explained_by` of symptoms; a cause is never explained by its own symptom."""
    causes = ScopeIndex((scope, finding) for finding in findings for scope in finding.explains)
    result = []
    for finding in findings:
        cause = next((other.key for other in causes.covering(finding) if not _mutual(other, finding)), None)
        same = finding.explained_by == cause
        result.append(finding if same else msgspec.structs.replace(finding, explained_by=cause))
    return tuple(result)


def _mutual(cause: Finding, finding: Finding) -> bool:
    return cause is finding or any(scope.covers(cause) for scope in finding.explains)
