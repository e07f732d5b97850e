"""Situations for the rules about pods, and the check that every finding goes through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from monitor.detect.base import Limits, Rule, RuleContext, RuleResult
from monitor.detect.engine import DetectionHistory, detect
from monitor.facts.cluster import ClusterView, SourceView
from monitor.facts.cluster_facts import make_world
from monitor.facts.findings import LABELS, Finding
from monitor.facts.text import Text
from monitor.i18n import say
from tests.explain.builders import NOW

SEEN = ClusterView(at=NOW)
PODS_UNSEEN = ClusterView(at=NOW, sources=(SourceView(name="pods", ok=False, why="stale"),))


def rule_context(now: float = NOW, services: Any = (), limits: Any = None, **facts: Any) -> RuleContext:
    """What a rule is given. All of Kubernetes is seen, unless `view` says otherwise."""
    world = make_world(**({"view": SEEN} | facts))
    return RuleContext(facts=world, now=now, services=services, limits=Limits(limits))


def run(rule: Rule, memory: Any = None, limits: Any = None, **facts: Any) -> RuleResult:
    """Run a rule, and hold what it finds against what every finding has to be."""
    found = rule(rule_context(limits=limits if limits is not None else rule.limits(), **facts), memory)
    msgspec.json.encode(found.memory)
    for finding in found.findings:
        check(finding, rule)
    return found


def one(rule: Rule, memory: Any = None, limits: Any = None, **facts: Any) -> Finding:
    """Run a rule that has to find one thing."""
    findings = run(rule, memory, limits, **facts).findings
    assert len(findings) == 1, [finding.key for finding in findings]
    return findings[0]


def none(rule: Rule, memory: Any = None, limits: Any = None, **facts: Any) -> bool:
    """Whether a rule finds nothing."""
    return run(rule, memory, limits, **facts).findings == ()


def check(finding: Finding, rule: Rule) -> None:
    """Each label is known and short, the cause is one of the rule's, and all is said in both languages."""
    assert finding.rule == rule.rule
    assert not rule.causes or finding.cause in rule.causes
    assert set(finding.labels) <= set(LABELS)
    assert all(0 < len(value) <= 253 for value in finding.labels.values()), finding.labels
    if finding.cause == "unknown":
        assert finding.raw
    english, chinese = text(finding, "en"), text(finding, "zh")
    assert english.isprintable()
    assert any("一" <= letter <= "鿿" for letter in chinese)
    assert finding.headline.key.startswith(rule.rule)
    assert finding.advice


def text(finding: Finding, lang: str = "en") -> str:
    """All that a finding says, on one line."""
    notes: Sequence[Text] = (finding.headline, *finding.evidence, *finding.advice)
    return " ".join(say(lang, note.key, note.values) for note in notes)


def held(rule: Rule, before: dict[str, Any], after: dict[str, Any]) -> tuple[Finding, ...]:
    """What is left of a rule's findings when the facts of `before` are followed by those of `after`."""
    first = detect((rule,), {}, rule_context(**before), DetectionHistory())
    assert first.findings, "nothing was found to begin with"
    return detect((rule,), {}, rule_context(**after), first.history).findings
