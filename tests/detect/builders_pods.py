"""Rule contexts for the pod rules, and the checks on every finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from monitor.detect.base import Limits, Rule, RuleContext
from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.facts.cluster import ClusterView, SourceView
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import LABELS, Finding
from monitor.facts.text import Text
from monitor.i18n import say
from tests.detect.running import Evaluated, evaluate, history_of
from tests.explain.builders import NOW

SEEN = ClusterView(at=NOW)
PODS_UNSEEN = ClusterView(at=NOW, sources=(SourceView(name="pods", ok=False, why="stale"),))


def rule_context(now: float = NOW, services: Any = (), limits: Any = None, **facts: Any) -> RuleContext:
    """Context in which all of Kubernetes is visible, unless `view` is given."""
    world = make_cluster_facts(**({"view": SEEN} | facts))
    return RuleContext(facts=world, now=now, services=services, limits=Limits(limits))


def run(rule: Rule, memory: Any = None, limits: Any = None, **facts: Any) -> Evaluated:
    """Result of a rule, with every finding checked."""
    found = evaluate(rule, rule_context(limits=limits if limits is not None else rule.limits(), **facts), memory)
    msgspec.json.encode(found.memory)
    for finding in found.findings:
        check(finding, rule)
    return found


def one(rule: Rule, memory: Any = None, limits: Any = None, **facts: Any) -> Finding:
    """The only finding of a rule."""
    findings = run(rule, memory, limits, **facts).findings
    assert len(findings) == 1, [finding.key for finding in findings]
    return findings[0]


def none(rule: Rule, memory: Any = None, limits: Any = None, **facts: Any) -> bool:
    """Whether a rule finds nothing."""
    return run(rule, memory, limits, **facts).findings == ()


def check(finding: Finding, rule: Rule) -> None:
    """Labels and cause are declared, and all texts exist in both languages."""
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
    """All texts of a finding, on one line."""
    notes: Sequence[Text] = (finding.headline, *finding.evidence, *finding.advice)
    return " ".join(say(lang, note.key, note.values) for note in notes)


def held(rule: Rule, before: dict[str, Any], after: dict[str, Any]) -> tuple[Finding, ...]:
    """Findings of a rule for the facts of `after` following those of `before`."""
    first = detect((rule,), {}, rule_context(**before), DetectionHistory())
    assert first.findings, "nothing was found to begin with"
    return detect((rule,), {}, rule_context(**after), first.history).findings


def due(rule: Rule, memory: Any = None, **facts: Any) -> float | None:
    """Seconds until time alone may change the result of a rule."""
    engine = Engine((rule,), {}, history_of(rule, memory))
    engine.evaluate(rule_context(**facts))
    return engine.next_at - NOW if engine.next_at is not None else None


def after_change(rule: Rule, before: dict[str, Any], after: dict[str, Any]) -> tuple[Finding, ...]:
    """Findings of an engine that sees only what changes from `before` to `after`: those of a new one."""
    engine = Engine((rule,), {})
    engine.evaluate(rule_context(**before))
    found = engine.evaluate(rule_context(**after))
    assert found == detect((rule,), {}, rule_context(**after), DetectionHistory()).findings
    return found
