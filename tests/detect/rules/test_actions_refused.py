# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monitor.detect.base import Limits as Exceptions
from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules.actions_refused import CAUSES, RULE, Limits
from monitor.facts.actions import ActionsFact
from monitor.facts.agents import AgentFact
from monitor.facts.node import NodeSnapshot
from tests.detect.builders_nodes import assert_sound, names, only, rule_context, text
from tests.detect.running import evaluate
from tests.explain.builders import NOW

FAST_CLOCK = 3600.0


def agent(refused: dict[str, int], ago: float = 5.0, *, now: float = NOW, skew: float = 0.0, **more: Any) -> AgentFact:
    at = now - 1 + skew
    actions = ActionsFact(enabled=True, refused=refused, refused_at=at - ago if refused else None)
    snapshot = NodeSnapshot(node="n1", at=at, agent_version="0", actions=actions)
    return AgentFact(target="n1:9835", node="n1", snapshot=snapshot, received_at=now - 1, **more)


CASES: list[tuple[str, AgentFact, str | None, tuple[str, ...]]] = [
    ("nothing was refused", agent({}), None, ()),
    ("an agent that does not tell", AgentFact(target="n1:9835", node="n1", received_at=NOW - 1, snapshot=NodeSnapshot(node="n1", at=NOW - 1, agent_version="0")), None, ()),
    ("a wrong signature", agent({"signature": 1}), "signature", ("without a valid signature: 1 time,", "public_key_file on n1")),
    ("a token of an old daemon", agent({"token": 1}), "token", ("no longer accept: 1 time,", "gpuwarden keys")),
    ("a request for another node", agent({"node": 2}), "node", ("another node: 2 times", "agent.node_name on n1")),
    ("tokens, by a clock that is an hour ahead", agent({"token": 3}, skew=FAST_CLOCK), "token", ("3 times", "5 s ago")),
    ("already executed", agent({"replayed": 2}), "replayed", ("2 times", "agent.actions.tls")),
    ("an old request", agent({"expired": 1}), "expired", ("NTP",)),
    ("too many", agent({"too-many": 9}), "too-many", ("9 requests refused", "per_minute")),
    ("the gravest is the cause, the others are evidence", agent({"expired": 1, "token": 1, "too-many": 4}), "token", ("per minute: 4", "valid yet: 1")),
    ("all of them", agent({"node": 1, "signature": 1, "token": 2}), "signature", ("instead of a signature: 2", "another node: 1")),
    ("that it was asked though it is off is no attack", agent({"disabled": 3, "malformed": 2}), None, ()),
    ("long ago", agent({"token": 1}, ago=1000), None, ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "heard", "cause", "says"), CASES, ids=names(CASES))
def test_an_agent(name: str, heard: AgentFact, cause: str | None, says: tuple[str, ...]) -> None:
    detected = evaluate(RULE, rule_context(RULE, agents=[heard]), None)
    if cause is None:
        assert detected.findings == ()
        return
    finding = only(detected)
    assert (finding.cause, finding.labels) == (cause, {"node": "n1"})
    assert [part for part in says if part not in text(finding)] == []
    assert "n1" in text(finding, "zh")


def test_every_cause_has_a_case() -> None:
    assert {case[2] for case in CASES} - {None} == set(CAUSES)


def test_it_begins_with_what_is_refused_and_ends_when_all_is_quiet() -> None:
    """Old counts do not keep it alive, and are not mistaken for new ones."""
    counts, memory, seen = {"expired": 4}, None, []
    for minute in range(60):
        if minute in (10, 12):
            counts = counts | {"token": counts.get("token", 0) + 1}
        now = NOW + 60 * minute
        detected = evaluate(RULE, rule_context(RULE, agents=[agent(counts, ago=5000, now=now)], now=now), memory)
        memory = detected.memory
        seen.append(detected.findings[0].cause if detected.findings else None)
    assert seen == [None] * 10 + ["token"] * 17 + [None] * 33


def test_a_restart_of_the_agent_is_no_refusal_and_what_comes_after_it_is() -> None:
    memory = evaluate(RULE, rule_context(RULE, agents=[agent({"token": 5}, ago=5000)]), None).memory
    quiet = evaluate(RULE, rule_context(RULE, agents=[agent({})]), memory)
    assert (quiet.findings, quiet.memory) == ((), {})
    assert only(evaluate(RULE, rule_context(RULE, agents=[agent({"token": 1})]), quiet.memory)).cause == "token"


def test_the_limit_is_what_it_says() -> None:
    given = rule_context(RULE, agents=[agent({"token": 1}, ago=100)])
    assert evaluate(RULE, given, None).findings

    assert not evaluate(
        RULE, rule_context(RULE, agents=[agent({"token": 1}, ago=100)], limits=Exceptions(Limits(quiet=60.0))), None
    ).findings


def test_an_agent_that_falls_silent_holds_what_was_found() -> None:
    first = detect((RULE,), {}, rule_context(RULE, agents=[agent({"token": 1})]), DetectionHistory())
    later = detect((RULE,), {}, rule_context(RULE, agents=[agent({"token": 1}, silent_since=NOW - 1)]), first.history)
    assert [(finding.cause, finding.held) for finding in later.findings] == [("token", True)]
    assert_sound(later.findings[0])


def test_what_was_refused_by_a_clock_that_is_set_back_is_over_in_time() -> None:
    ahead, counts = NOW + 86400, {"expired": 1}
    history = detect(
        (RULE,), {}, rule_context(RULE, agents=[agent({"expired": 0}, now=ahead)], now=ahead), DetectionHistory()
    ).history
    for now in (ahead, NOW, NOW + 900):
        found = detect((RULE,), {}, rule_context(RULE, agents=[agent(counts, ago=5, now=now)], now=now), history)
        history = found.history
    assert found.findings == ()


def test_it_ends_without_another_answer_and_says_how_long_ago_it_was() -> None:
    engine, given = Engine((RULE,), {}), rule_context(RULE, agents=[agent({"token": 1}, ago=5)])
    assert "5 s ago" in text(engine.evaluate(given)[0])
    assert engine.next_at == NOW + 60
    assert "1 min 5 s ago" in text(engine.evaluate(replace(given, now=NOW + 60))[0])
    times = (NOW + 90, NOW + 894, NOW + 895)
    found = [
        engine.evaluate(rule_context(RULE, agents=[agent({"token": 1}, ago=5 + now - NOW, now=now)], now=now))
        for now in times
    ]
    assert [len(each) for each in found] == [1, 1, 0]


@pytest.mark.parametrize("memory", [1, {"counts": 3}, {"token": 3}])
def test_a_memory_of_another_version_is_as_none(memory: Any) -> None:
    assert only(evaluate(RULE, rule_context(RULE, agents=[agent({"token": 1})]), {"n1": memory})).since == NOW - 5
