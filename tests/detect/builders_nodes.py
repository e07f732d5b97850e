"""Rule contexts about nodes, agents and services, and the checks on every finding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from monitor.detect.base import Limits, Rule, RuleContext, symptoms_of
from monitor.detect.rules import RULES
from monitor.facts.cluster import ClusterView, SourceView
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import LABELS, Finding
from monitor.facts.kube import ConditionFact
from monitor.facts.node import CollectorFact
from monitor.facts.services import ServiceFact
from monitor.facts.text import Text
from monitor.i18n import CATALOGS, LANGUAGES, fields, say
from tests.detect.running import Evaluated
from tests.explain.builders import NOW

SEEN = (SourceView(name="pods", ok=True), SourceView(name="nodes", ok=True), SourceView(name="agents", ok=True))
STANDALONE = (SourceView(name="kubernetes", ok=False, why="switched off"),)


def unseen(name: str, why: str = "stale", since: float | None = NOW - 600) -> tuple[SourceView, ...]:
    """Sources with one Kubernetes resource unavailable."""
    return (*(source for source in SEEN if source.name != name), SourceView(name=name, ok=False, why=why, since=since))


def rule_context(
    rule: Rule,
    *,
    now: float = NOW,
    sources: tuple[SourceView, ...] = SEEN,
    services: Iterable[ServiceFact] = (),
    limits: Limits[Any] | None = None,
    **facts: Any,
) -> RuleContext:
    """Context of the rule. `facts` are those of `make_world`."""
    world = make_cluster_facts(**({"view": ClusterView(at=now, sources=sources)} | facts))
    symptoms = symptoms_of(rule, RULES)
    return RuleContext(world, now, tuple(services), limits=limits or Limits(rule.limits()), symptoms=symptoms)


def condition(kind: str, status: bool | None = True, **more: Any) -> ConditionFact:
    given: dict[str, Any] = {"since": NOW - 600}
    return ConditionFact(type=kind, status=status, **(given | more))


def collector(name: str = "disk", **more: Any) -> CollectorFact:
    given: dict[str, Any] = {"outcome": "ok", "interval_seconds": 15.0, "succeeded_at": NOW - 5}
    return CollectorFact(name=name, **(given | more))


def service(name: str = "portal", **more: Any) -> ServiceFact:
    given: dict[str, Any] = {
        "kind": "http", "target": f"https://{name}.lab", "ok": False, "at": NOW - 1, "failing_since": NOW - 600
    }  # fmt: skip
    return ServiceFact(name=name, **(given | more))


def only(result: Evaluated) -> Finding:
    """The only finding, checked."""
    assert len(result.findings) == 1, result.findings
    finding = result.findings[0]
    assert_sound(finding)
    return finding


def assert_sound(finding: Finding) -> None:
    """Every text can be rendered in both languages, and the labels are allowed."""
    assert set(finding.labels) <= set(LABELS)
    for note in notes(finding):
        for lang in LANGUAGES:
            assert fields(CATALOGS[lang][note.key]) <= set(note.values), note
            assert say(lang, note.key, note.values).isprintable()
    assert finding.cause != "unknown" or finding.raw


def notes(finding: Finding) -> tuple[Text, ...]:
    return (finding.headline, *finding.evidence, *finding.advice)


def text(finding: Finding, lang: str = "en") -> str:
    return "\n".join(say(lang, note.key, note.values) for note in notes(finding))


def names(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    return [row[0] for row in rows]
