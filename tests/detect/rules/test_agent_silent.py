# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules.agent_silent import CAUSES, RULE
from monitor.facts.agents import AgentFact
from monitor.facts.kube import NodeFact
from monitor.facts.node import CollectorFact, NodeSnapshot
from tests.detect.builders_nodes import STANDALONE, assert_sound, collector, names, only, rule_context, text, unseen
from tests.detect.running import evaluate, lasting_since
from tests.explain.builders import NOW, agent, node

FAST_CLOCK = 3600.0  # a node whose clock is an hour ahead of ours


def silent(seconds: float, name: str | None = "n1", heard: bool = True) -> AgentFact:
    snapshot = NodeSnapshot(node="n1", at=NOW - seconds, agent_version="0", collectors=(collector(),))
    return AgentFact(
        target="10.0.0.1:9835",
        node=name,
        snapshot=snapshot if heard else None,
        received_at=NOW - seconds - 10 if heard else None,
        silent_since=NOW - seconds,
        error="connection refused",
    )


def reading(fact: CollectorFact, skew: float = 0.0) -> AgentFact:
    snapshot = NodeSnapshot(node="n1", at=NOW - 1 + skew, agent_version="0", collectors=(fact,))
    return AgentFact(target="n1:9835", node="n1", snapshot=snapshot, received_at=NOW - 1)


ILL = node("n1", ready=None)
CASES: list[tuple[str, AgentFact, NodeFact | None, str | None, tuple[str, ...]]] = [
    ("it answers", agent("n1"), node("n1"), None, ()),
    ("silent for less than two minutes", silent(109), node("n1"), None, ()),
    ("silent for more", silent(111), node("n1"), "agent-down", ("1 min 51 s", "connection refused", "10.0.0.1:9835")),
    ("it never answered", silent(130, heard=False), node("n1"), "agent-down", ("2 min 10 s",)),
    ("it was not asked yet", AgentFact(target="n1:9835", node="n1"), node("n1"), None, ()),
    ("the node is down too", silent(130), ILL, "node-down", ("the node itself is down",)),
    ("without Kubernetes", silent(130), None, "agent-down", ("n1",)),
    ("nobody asks any more", AgentFact(target="n1:9835", node="n1", received_at=NOW - 200), node("n1"), "agent-down", ("3 min 20 s",)),
    ("a collector hangs", reading(collector(hung_since=NOW - 400)), node("n1"), "collector-hung", ("Collector disk on n1 has been hanging", "6 min 40 s", "stat,wchan")),
    ("it hangs for less than five minutes", reading(collector(hung_since=NOW - 299)), node("n1"), None, ()),
    ("it hangs, by a clock that is an hour ahead", reading(collector(hung_since=NOW - 299 + FAST_CLOCK), FAST_CLOCK), node("n1"), None, ()),
    ("a collector fails", reading(collector(outcome="failed", succeeded_at=NOW - 400, message="OSError: no")), node("n1"), "collector-failing", ("Collector disk on n1 has been failing", "OSError: no")),
    ("it fails for less", reading(collector(outcome="failed", succeeded_at=NOW - 310)), node("n1"), None, ()),
    ("it runs every ten minutes and failed once", reading(collector(outcome="failed", succeeded_at=NOW - 660, interval_seconds=600.0)), node("n1"), None, ()),
    ("there is nothing to read", reading(collector(outcome="absent", succeeded_at=None)), node("n1"), None, ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "heard", "known", "cause", "says"), CASES, ids=names(CASES))
def test_an_agent(
    name: str, heard: AgentFact, known: NodeFact | None, cause: str | None, says: tuple[str, ...]
) -> None:
    detected = evaluate(RULE, rule_context(RULE, agents=[heard], nodes=[known] if known else []), None)
    if cause is None:
        assert detected.findings == ()
        return
    finding = only(detected)
    assert finding.cause == cause
    assert finding.labels["node"] == "n1"
    assert [part for part in says if part not in text(finding)] == []
    assert "n1" in text(finding, "zh")


def test_every_cause_has_a_case() -> None:
    assert {case[3] for case in CASES} - {None} == set(CAUSES)


def test_an_agent_that_never_said_its_node_goes_by_its_address() -> None:
    finding = only(
        evaluate(RULE, rule_context(RULE, agents=[silent(130, None, heard=False)], sources=STANDALONE), None)
    )
    assert finding.labels == {"node": "10.0.0.1:9835"}


def test_each_collector_of_each_node_is_a_finding_of_its_own() -> None:
    facts = (collector("disk", hung_since=NOW - 400), collector("mounts", hung_since=NOW - 400), collector("gpu"))
    found = evaluate(
        RULE, rule_context(RULE, agents=[agent("n1", collectors=facts), agent("n2", collectors=facts)]), None
    ).findings
    assert sorted((each.labels["node"], each.labels["service"]) for each in found) == [
        (name, reader) for name in ("n1", "n2") for reader in ("disk", "mounts")
    ]


def test_of_two_agents_of_a_node_the_one_that_speaks_counts() -> None:
    new = AgentFact(target="10.0.0.2:9835", node="n1", snapshot=agent("n1").snapshot, received_at=NOW - 1)
    assert evaluate(RULE, rule_context(RULE, agents=[silent(600), new], nodes=[node("n1")]), None).findings == ()


def test_a_collector_that_never_worked_is_noticed_in_time() -> None:
    heard = reading(collector(outcome="failed", succeeded_at=None, failures=3))
    first = evaluate(RULE, rule_context(RULE, agents=[heard]), None)
    assert first.findings == ()
    later = AgentFact(target="n1:9835", node="n1", snapshot=heard.snapshot, received_at=NOW + 301)
    assert (
        only(evaluate(RULE, rule_context(RULE, agents=[later], now=NOW + 301), first.memory)).cause
        == "collector-failing"
    )
    well = AgentFact(target="n1:9835", node="n1", snapshot=agent("n1").snapshot, received_at=NOW + 301)
    assert evaluate(RULE, rule_context(RULE, agents=[well], now=NOW + 301), first.memory).memory == {}
    silent_now = AgentFact(target="n1:9835", node="n1", snapshot=heard.snapshot, received_at=NOW, silent_since=NOW + 1)
    assert evaluate(RULE, rule_context(RULE, agents=[silent_now]), first.memory).memory == first.memory


@pytest.mark.parametrize("memory", [1, {"disk": "x"}, {"condition": "no-agent", "since": NOW}])
def test_a_memory_of_another_version_is_as_none(memory: Any) -> None:
    heard = reading(collector(outcome="failed", succeeded_at=None, failures=3))
    assert evaluate(RULE, rule_context(RULE, agents=[heard]), {"n1": memory}).memory == {"n1": {"disk": NOW}}


NODES = (node("n1"), node("n2"), node("cpu-1", gpus=0))


def test_a_node_with_cards_and_without_an_agent_is_noticed_in_time() -> None:
    def given(now: float) -> Any:
        return rule_context(RULE, nodes=NODES, agents=[AgentFact(target="n1:1", node="n1", received_at=now)], now=now)

    first = evaluate(RULE, given(NOW), None)
    assert (first.findings, first.memory) == ((), {"n2": lasting_since("no-agent", NOW)})
    assert evaluate(RULE, given(NOW + 119), first.memory).findings == ()
    finding = only(evaluate(RULE, given(NOW + 121), first.memory))
    assert (finding.cause, finding.labels) == ("agent-down", {"node": "n2"})
    assert "n2 has GPUs but has had no agent for 2 min 1 s" in text(finding)
    earlier = evaluate(RULE, given(NOW - 3600), first.memory).memory  # the clock was set back
    assert earlier == {"n2": lasting_since("no-agent", NOW - 3600)}


def test_no_agent_anywhere_is_one_finding() -> None:
    memory = evaluate(RULE, rule_context(RULE, nodes=NODES), None).memory
    finding = only(evaluate(RULE, rule_context(RULE, nodes=NODES, now=NOW + 121), memory))
    assert (finding.cause, finding.labels) == ("agent-down", {"service": "agents"})
    assert "2 nodes have GPUs" in text(finding)
    assert "daemon.agents.static" in text(finding, "zh")


def test_no_agent_anywhere_stays_one_finding_while_kubernetes_is_out_of_reach() -> None:
    engine = Engine([RULE], {})
    engine.evaluate(rule_context(RULE, nodes=NODES))
    engine.evaluate(rule_context(RULE, nodes=NODES, now=NOW + 120))
    (held,) = engine.evaluate(rule_context(RULE, nodes=NODES, sources=unseen("nodes"), now=NOW + 130))
    assert (held.labels, held.held, held.since) == ({"service": "agents"}, True, NOW)
    heard = AgentFact(target="n1:9835", node="n1", snapshot=agent("n1").snapshot, received_at=NOW + 140)
    (left,) = engine.evaluate(rule_context(RULE, nodes=NODES, agents=[heard], now=NOW + 140))
    assert (left.labels, left.held, left.since) == ({"node": "n2"}, False, NOW)


def test_silent_agents_that_are_gone_are_single_findings_until_it_is_certain() -> None:
    engine = Engine([RULE], {})
    engine.evaluate(rule_context(RULE, nodes=NODES, agents=[silent(130)]))
    (held,) = engine.evaluate(rule_context(RULE, nodes=NODES, now=NOW + 1))
    assert (held.labels, held.held) == ({"node": "n1"}, True)
    (nowhere,) = engine.evaluate(rule_context(RULE, nodes=NODES, now=NOW + 121))
    assert (nowhere.labels, nowhere.held) == ({"service": "agents"}, False)


DUE: list[tuple[str, dict[str, Any], float | None]] = [
    ("it answers", {"agents": [agent("n1")]}, NOW + 120),
    ("it has just fallen silent", {"agents": [silent(10)]}, NOW + 100),
    ("it has been silent for long", {"agents": [silent(500)]}, None),
    ("it is not polled", {"agents": [AgentFact(target="n1:9835", node="n1", received_at=NOW - 200)]}, NOW + 30),
    ("there is none", {"nodes": [node("n1")]}, NOW + 120),
    ("it needs none", {"nodes": [node("n1", gpus=0)]}, None),
    ("a collector hangs", {"agents": [reading(collector(hung_since=NOW - 200))]}, NOW + 100),
    ("a collector fails", {"agents": [reading(collector(outcome="failed", succeeded_at=NOW - 300))]}, NOW + 15),
]


@pytest.mark.parametrize(("name", "facts", "due"), DUE, ids=names(DUE))
def test_when_time_alone_may_change_the_result(name: str, facts: dict[str, Any], due: float | None) -> None:
    engine, given = Engine([RULE], {}), rule_context(RULE, **facts)
    before = engine.evaluate(given)
    assert engine.next_at == due
    if due is not None:
        assert engine.evaluate(replace(given, now=due)) or before


def test_an_agent_that_is_polled_again_is_well() -> None:
    engine = Engine([RULE], {})
    unasked = AgentFact(target="n1:9835", node="n1", snapshot=agent("n1").snapshot, received_at=NOW - 200)
    assert len(engine.evaluate(rule_context(RULE, agents=[unasked]))) == 1
    assert engine.evaluate(rule_context(RULE, agents=[agent("n1")], now=NOW + 30)) == ()


def test_what_an_agent_said_of_its_collectors_is_held_while_it_is_silent() -> None:
    hung = collector(hung_since=NOW - 400)
    history = detect(
        [RULE], {}, rule_context(RULE, agents=[reading(hung)], nodes=[node("n1")]), DetectionHistory()
    ).history
    found = detect([RULE], {}, rule_context(RULE, agents=[silent(130)], nodes=[node("n1")]), history).findings
    assert sorted((each.cause, each.held) for each in found) == [("agent-down", False), ("collector-hung", True)]
    well = detect([RULE], {}, rule_context(RULE, agents=[agent("n1")], nodes=[node("n1")]), history).findings
    assert well == ()


@pytest.mark.parametrize("kind", ["pods", "nodes"])
def test_agents_that_cannot_be_found_are_not_gone(kind: str) -> None:
    history = detect(
        [RULE], {}, rule_context(RULE, agents=[silent(130)], nodes=[node("n1")]), DetectionHistory()
    ).history
    found = detect([RULE], {}, rule_context(RULE, sources=unseen(kind)), history).findings
    assert [(each.cause, each.held) for each in found] == [("agent-down", True)]


def test_an_agent_whose_pod_is_gone_does_not_become_well_by_that() -> None:
    history = detect([RULE], {}, rule_context(RULE, agents=[silent(130)], nodes=NODES[:1]), DetectionHistory()).history
    others = [AgentFact(target="n9:1", node="n9", received_at=NOW)]
    found = detect([RULE], {}, rule_context(RULE, agents=others, nodes=NODES[:1]), history).findings
    assert [(each.labels["node"], each.held) for each in found] == [("n1", True)]


def test_labels_are_bounded() -> None:
    fact = collector("x" * 9999, hung_since=NOW - 400)
    finding = only(evaluate(RULE, rule_context(RULE, agents=[reading(fact)]), None))
    assert max(len(value) for value in finding.labels.values()) <= 253
    assert_sound(finding)
