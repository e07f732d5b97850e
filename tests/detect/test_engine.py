# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from monitor.detect.base import Limits, Override, Rule, RuleContext, RuleResult
from monitor.detect.engine import RULE_BROKEN, Detection, DetectionHistory, detect
from monitor.detect.rules import RULES
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text
from monitor.i18n import LANGUAGES, say
from tests.explain.builders import NOW

CONTEXT = RuleContext(make_cluster_facts(), NOW)


@dataclass(frozen=True)
class None_:
    """A rule without limits."""


def finding(rule: str = "a", **more: Any) -> Finding:
    given: dict[str, Any] = {
        "severity": Severity.WARNING, "cause": "x", "labels": {"node": "n1"}, "headline": Text(key="card-memory")
    }  # fmt: skip
    return Finding(rule=rule, **(given | more))


def rule(name: str, decide: Callable[[RuleContext, Any], RuleResult]) -> Rule:
    return Rule(name, None_, ("x",), decide)


def finds(name: str, *findings: Finding, memory: Any = None, blind: tuple[Scope, ...] = ()) -> Rule:
    return rule(name, lambda _situation, _memory: RuleResult(findings, memory, blind))


def run(
    *rules: Rule, before: DetectionHistory | None = None, limits: dict[str, Limits[Any]] | None = None
) -> Detection:
    return detect(rules, limits or {}, CONTEXT, before or DetectionHistory())


def test_what_is_found_is_in_a_stable_order() -> None:
    one, two = finding("a"), finding("b")
    found = run(finds("b", two), finds("a", one)).findings
    assert found == run(finds("a", one), finds("b", two)).findings == (one, two)


def test_a_rule_that_is_off_finds_nothing_and_forgets() -> None:
    before = run(finds("a", finding(), memory=1)).history
    after = run(finds("a", finding(), memory=1), before=before, limits={"a": Limits(None_(), enabled=False)})
    assert (after.findings, after.history.memories) == ((), {})


def test_each_rule_is_given_its_own_limits_and_its_own_memory() -> None:
    seen: dict[str, tuple[Any, Any]] = {}

    def note(name: str) -> Rule:
        def decide(context: RuleContext, memory: Any) -> RuleResult:
            seen[name] = (context.limits, memory)
            return RuleResult(memory=name)

        return rule(name, decide)

    limits = Limits(None_(), (Override({"node": "n*"}, None_()),))
    before = run(note("a"), note("b"), limits={"a": limits}).history
    assert seen == {"a": (limits, None), "b": (Limits(None_()), None)}
    run(note("a"), note("b"), before=before)
    assert seen == {"a": (Limits(None_()), "a"), "b": (Limits(None_()), "b")}


def test_a_rule_is_given_the_rules_that_it_suppresses() -> None:
    seen: list[tuple[str, ...]] = []

    def decide(context: RuleContext, _memory: Any) -> RuleResult:
        seen.append(context.symptoms)
        return RuleResult()

    symptoms = [replace(finds(name), suppressed_by=("cause",)) for name in ("z", "a")]
    run(rule("cause", decide), *symptoms, finds("other"))
    assert seen == [("a", "z")]


# Prompt rules


def prompt(each: Rule) -> Rule:
    return replace(each, prompt=True)


def test_only_prompt_rules_are_asked_and_of_the_others_all_stays() -> None:
    before = run(prompt(finds("a", finding(), memory=1)), finds("b", finding("b"), memory=2)).history
    asked = [prompt(finds("a", memory=3)), finds("b", memory=4)]
    after = detect(asked, {}, CONTEXT, before, prompt_only=True)
    assert ([each.rule for each in after.findings], after.history.memories) == (["b"], {"a": 3, "b": 2})


def test_what_a_prompt_rule_finds_is_explained_by_what_others_found_and_explains_it() -> None:
    pod = finding("pod", labels={"node": "n1", "pod": "p"})
    disk = finding("disk", explains=(Scope(labels={"node": "n1"}, rules=("pod",)),))
    registry = finding("registry", explains=(Scope(labels={"node": "n1"}, rules=("disk",)),))
    before = run(prompt(finds("pod")), finds("disk", disk), prompt(finds("registry"))).history
    asked = [prompt(finds("pod", pod)), finds("disk"), prompt(finds("registry", registry))]
    found = detect(asked, {}, CONTEXT, before, prompt_only=True).findings
    assert {each.rule: each.explained_by for each in found} == {"pod": disk.key, "disk": registry.key, "registry": None}


def test_what_is_held_stays_held_while_its_rule_is_not_asked() -> None:
    history = run(finds("a", finding())).history
    history = run(finds("a", blind=(Scope(labels={}),)), before=history).history
    after = detect([finds("a")], {}, CONTEXT, history, prompt_only=True)
    assert [each.held for each in after.findings] == [True]


def test_a_rule_that_is_off_is_forgotten_between_looks_too() -> None:
    before = run(finds("a", finding(), memory=1)).history
    off = {"a": Limits(None_(), enabled=False)}
    after = detect([finds("a", finding(), memory=1)], off, CONTEXT, before, prompt_only=True)
    assert (after.findings, after.history.memories) == ((), {})


def test_a_cause_is_looked_for_as_promptly_as_its_symptoms() -> None:
    """Otherwise a symptom would be notified before the cause that suppresses it."""
    prompts = {each.rule for each in RULES if each.prompt}
    assert prompts == {"image-pull", "registry-unreachable", "pod-start-failed", "node-down", "service-down"}


# Blind and held


HOLDS: list[tuple[str, tuple[Scope, ...], list[tuple[str, bool]]]] = [
    ("all is seen", (), []),
    ("its node is not seen", (Scope(labels={"node": "n1"}),), [("n1", True)]),
    ("another node is not seen", (Scope(labels={"node": "n3"}),), []),
    ("nothing is seen", (Scope(labels={}),), [("n1", True), ("n2", True)]),
    ("its node is not seen, for another rule", (Scope(labels={"node": "n1"}, rules=("b",)),), []),
]


@pytest.mark.parametrize(("name", "blind", "expect"), HOLDS, ids=[row[0] for row in HOLDS])
def test_what_cannot_be_known_is_held(name: str, blind: tuple[Scope, ...], expect: list[tuple[str, bool]]) -> None:
    before = run(finds("a", finding(), finding(labels={"node": "n2"}))).history
    found = run(finds("a", blind=blind), before=before).findings
    assert [(each.labels["node"], each.held) for each in found] == expect


def test_what_is_held_is_held_for_as_long_as_nothing_is_known_and_then_counts_again() -> None:
    blind = finds("a", blind=(Scope(labels={}),))
    history = run(finds("a", finding())).history
    for _ in range(3):
        history = run(blind, before=history).history
    assert [each.held for each in history.findings] == [True]
    assert run(finds("a"), before=history).findings == ()


def test_what_is_found_anew_is_not_held_even_if_part_of_it_is_not_seen() -> None:
    before = run(finds("a", finding(cause="x"))).history
    found = run(finds("a", finding(cause="y"), blind=(Scope(labels={}),)), before=before).findings
    assert [(each.cause, each.held) for each in found] == [("y", False)]


def test_one_rule_does_not_hold_what_another_found() -> None:
    before = run(finds("a"), finds("b", finding("b"))).history
    assert run(finds("a", blind=(Scope(labels={}),)), finds("b"), before=before).findings == ()


# Causes and symptoms


def explained(*findings: Finding) -> dict[str, str | None]:
    return {each.rule: each.explained_by for each in run(*(finds(each.rule, each) for each in findings)).findings}


ON_N1 = (Scope(labels={"node": "n1"}),)
DOWN = finding("node-down", explains=ON_N1)
EXPLAINED: list[tuple[str, tuple[Finding, ...], dict[str, str | None]]] = [
    ("a symptom", (DOWN, finding("pod")), {"node-down": None, "pod": "node-down|node=n1"}),
    ("on another node", (DOWN, finding("pod", labels={"node": "n2"})), {"node-down": None, "pod": None}),
    ("a more precise subject", (DOWN, finding("pod", labels={"node": "n1", "pod": "p"})), {"node-down": None, "pod": "node-down|node=n1"}),
    ("of a rule that it does not explain", (finding("disk", explains=(Scope(labels={"node": "n1"}, rules=("pull",)),)), finding("pod")), {"disk": None, "pod": None}),
    ("two that explain each other explain nothing", (DOWN, finding("disk", explains=ON_N1)), {"node-down": None, "disk": None}),
    ("a cause has a cause", (DOWN, finding("agent", explains=(Scope(labels={}, rules=("pod",)),)), finding("pod", labels={"node": "n2"})), {"node-down": None, "agent": "node-down|node=n1", "pod": "agent|node=n1"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "expect"), EXPLAINED, ids=[row[0] for row in EXPLAINED])
def test_causes_and_symptoms(name: str, given: tuple[Finding, ...], expect: dict[str, str | None]) -> None:
    assert explained(*given) == expect


def test_a_symptom_stands_for_itself_once_its_cause_is_over() -> None:
    before = run(finds("node-down", DOWN), finds("pod", finding("pod"))).history
    after = run(finds("node-down"), finds("pod", blind=ON_N1), before=before).findings
    assert [(each.rule, each.explained_by, each.held) for each in after] == [("pod", None, True)]


# Broken rules


def breaks(_context: RuleContext, _memory: Any) -> RuleResult:
    raise ZeroDivisionError("division by zero")


def test_a_rule_that_breaks_says_so_and_costs_nothing_else() -> None:
    before = run(finds("a", finding(), memory={"kept": 1})).history
    found = run(rule("a", breaks), finds("b", finding("b")), before=before)
    assert [(each.rule, each.cause, each.held) for each in found.findings] == [
        ("a", "x", True),
        ("a", RULE_BROKEN, False),
        ("b", "x", False),
    ]
    assert found.history.memories["a"] == {"kept": 1}
    broken = found.findings[1]
    assert [say(lang, broken.headline.key, broken.headline.values) for lang in LANGUAGES] == [
        "Rule a could not be evaluated: ZeroDivisionError: division by zero. Its last findings are kept.",
        "规则 a 无法检查：ZeroDivisionError: division by zero。上一次的结果保持不变。",
    ]
    assert run(finds("a", finding()), before=found.history).findings == (finding(),)


# The history


def test_history_survives_a_restart() -> None:
    memory = {"n1": {"changes": [1.5, 2.0], "ready": True, "word": "x", "nothing": None}}
    found = finding(explains=ON_N1, since=NOW, evidence=(Text(key="k", values={"a": 1, "b": 1.5, "c": "x"}),), raw="r")
    history = run(finds("a", found, memory=memory), finds("b", finding("b"))).history
    again = msgspec.json.decode(msgspec.json.encode(history), type=DetectionHistory)
    assert again == history
    assert run(finds("a", blind=(Scope(labels={}),)), before=again).findings[0].evidence == found.evidence


def test_a_history_of_rules_that_are_gone_is_dropped() -> None:
    before = DetectionHistory(memories={"old": 1}, findings=(finding("old"),))
    assert run(finds("a", memory=2), before=before).history == DetectionHistory(memories={"a": 2})


@pytest.mark.parametrize("listed", RULES, ids=lambda each: each.rule)
def test_what_a_rule_remembers_of_nothing_can_be_saved(listed: Rule) -> None:
    found = detect([listed], {}, CONTEXT, DetectionHistory())
    assert RULE_BROKEN not in [each.cause for each in found.findings]
    memory = msgspec.json.decode(msgspec.json.encode(found.history), type=DetectionHistory).memories[listed.rule]
    assert detect([listed], {}, CONTEXT, DetectionHistory(memories={listed.rule: memory})).findings == found.findings
