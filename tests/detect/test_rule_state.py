"""State of one rule: timers that do not pile up, one finding per key, one log entry per failure; declared latencies."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import pytest

from monitor.detect.base import ANY_CAUSE, Delay, Latency, NoLimits, Rule, RuleContext, RuleResult, SubjectKind
from monitor.detect.engine import Engine
from monitor.detect.rule_state import MAX_OUTDATED_TIMERS
from monitor.detect.subjects import NodeSubject
from tests.detect.test_engine import After, breaks_on_n1, context, due, finding, rule
from tests.explain.builders import NOW, node


def test_timers_that_are_replaced_again_and_again_do_not_pile_up() -> None:
    at: dict[str, float | None] = {"n1": NOW + 10_000, "n2": NOW + 500}
    timed, evaluated = due(at)
    engine = Engine([timed], {})
    for step in range(3 * MAX_OUTDATED_TIMERS):
        at["n1"] = NOW + 10_000 + step
        engine.evaluate(context(nodes=[node("n1", ready=bool(step % 2)), node("n2")], now=NOW + step))
    (state,) = engine._states
    assert len(state._timers) <= 2 * len(at) + MAX_OUTDATED_TIMERS
    assert engine.next_at == NOW + 500
    evaluated.clear()
    at["n2"] = None
    engine.evaluate(context(nodes=[node("n1", ready=True), node("n2")], now=NOW + 500))
    assert evaluated == ["n2"]
    assert engine.next_at == at["n1"]


@pytest.mark.parametrize(
    ("starts", "expect"),
    [
        ((NOW, NOW - 5), NOW - 5),
        ((NOW - 5, NOW), NOW - 5),
        ((None, NOW), NOW),
        ((NOW, None), NOW),
        ((None, None), None),
    ],
)
def test_of_findings_with_the_same_key_the_earliest_start_counts(
    starts: tuple[float | None, float | None], expect: float | None
) -> None:
    """Two nodes report the same service."""
    since = dict(zip(("n1", "n2"), starts, strict=True))

    def evaluate(subject: NodeSubject, *_: Any) -> RuleResult:
        return RuleResult((finding(labels={"service": "nas"}, since=since[subject.name]),))

    (found,) = Engine([rule("a", evaluate, SubjectKind.NODE)], {}).evaluate(context(nodes=[node("n1"), node("n2")]))
    assert found.since == expect


def test_a_rule_that_stays_broken_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine([rule("a", breaks_on_n1, SubjectKind.NODE, uses=("node",))], {})
    with caplog.at_level(logging.ERROR):
        for ready in (True, False, True):
            engine.evaluate(context(nodes=[node("n1", ready=ready, unschedulable=True)]))
    assert [record.message for record in caplog.records] == ["rule a failed on n1"]


def test_a_subject_without_a_report_has_none() -> None:
    with pytest.raises(LookupError, match="node n1 does not report"):
        _ = NodeSubject("n1").report


@dataclass(frozen=True)
class Latencies:
    declared: Any
    limits: type[Any]
    expect: Latency


SLOW, FAST = Latency(60.0), Latency("after", Delay.FIRST_SEEN)


@pytest.mark.parametrize(
    "case",
    [
        Latencies({}, After, FAST),
        Latencies({}, NoLimits, Latency()),
        Latencies(SLOW, After, SLOW),
        Latencies({"x": SLOW}, After, SLOW),
        Latencies({"y": SLOW}, After, FAST),
        Latencies({"y": FAST, ANY_CAUSE: SLOW}, After, SLOW),
    ],
    ids=["the limit", "no limit", "of all causes", "of this cause", "of another cause", "of any other cause"],
)
def test_the_latency_of_a_cause(case: Latencies) -> None:
    declared: Rule = replace(rule("a", _finds_nothing, limits=case.limits), latency=case.declared)
    assert declared.latency_of("x") == case.expect


def _finds_nothing(_subject: Any, _context: RuleContext, _memory: Any, _now: float) -> RuleResult:
    return RuleResult()
