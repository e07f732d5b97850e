# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monitor.detect.base import Limits, Override
from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules.node_down import CAUSES, RULE
from monitor.detect.rules.node_down import Limits as NodeLimits
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import NodeFact
from monitor.facts.text import Text
from tests.detect.builders_nodes import STANDALONE, condition, names, only, rule_context, text, unseen
from tests.detect.running import evaluate, history_of
from tests.explain.builders import NOW, agent, holding, node

CNI = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:cni uninitialized"


def unhealthy(name: str = "n1", **fields: Any) -> NodeFact:
    given: dict[str, Any] = {"ready": None, "ready_since": NOW - 300, "created_at": NOW - 90_000}
    return node(name, **(given | fields))


def ready_says(message: str, reason: str = "KubeletNotReady") -> dict[str, Any]:
    return {"ready": False, "conditions": (condition("Ready", False, reason=reason, message=message),)}


CASES: list[tuple[str, NodeFact, str | None, tuple[str, ...]]] = [
    ("well", unhealthy(ready=True), None, ()),
    ("its kubelet is silent", unhealthy(), "kubelet-silent", ("n1 is down", "5 min", "systemctl restart kubelet")),
    ("the network plugin is not ready", unhealthy(**ready_says(CNI)), "network", ("cni uninitialized",)),
    ("the network is unavailable", unhealthy(ready=True, conditions=(condition("NetworkUnavailable", message="no route"),)), "network", ("no route",)),
    ("ready says false for another reason", unhealthy(**ready_says("PLEG is not healthy")), "unknown", ("PLEG is not healthy",)),
    ("short of disk", unhealthy(ready=True, conditions=(condition("DiskPressure"),)), "disk-pressure", ("10 min", "is evicting")),
    ("short of memory", unhealthy(ready=True, conditions=(condition("MemoryPressure"),)), "memory-pressure", ("10 min",)),
    ("short of process ids", unhealthy(ready=True, conditions=(condition("PIDPressure", message="too many processes"),)), "unknown", ("too many processes",)),
    ("pressure that is over", unhealthy(ready=True, conditions=(condition("DiskPressure", False),)), None, ()),
    ("pressure of which nothing is known", unhealthy(ready=True, conditions=(condition("DiskPressure", None),)), None, ()),
    ("it has just joined", unhealthy(ready=False, created_at=NOW - 60, ready_since=NOW - 60), None, ()),
    ("it joined and did not get ready", unhealthy(ready=None, created_at=NOW - 400, ready_since=NOW - 400), "kubelet-silent", ()),
    ("it is being deleted", unhealthy(deletion_at=NOW - 5), None, ()),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "cause", "says"), CASES, ids=names(CASES))
def test_a_node(name: str, given: NodeFact, cause: str | None, says: tuple[str, ...]) -> None:
    detected = evaluate(RULE, rule_context(RULE, nodes=[given]), None)
    if cause is None:
        assert detected.findings == ()
        return
    finding = only(detected)
    assert (finding.cause, finding.labels) == (cause, {"node": "n1"})
    assert [part for part in says if part not in text(finding)] == []
    assert "节点 n1" in text(finding, "zh")


def test_every_cause_has_a_case() -> None:
    assert {case[2] for case in CASES} - {None, "unknown"} | {"flapping"} == set(CAUSES)


def test_the_limit_is_that_of_the_node() -> None:
    limits = Limits(NodeLimits(), overrides=(Override({"node": "spot-*"}, NodeLimits(after=301)),))
    detected = evaluate(RULE, rule_context(RULE, nodes=[unhealthy("spot-1"), unhealthy("n1")], limits=limits), None)
    assert only(detected).labels == {"node": "n1"}


SEVERITIES: list[tuple[str, NodeFact, int, Severity]] = [
    ("down with work on it", unhealthy(), 1, Severity.CRITICAL),
    ("down and empty", unhealthy(), 0, Severity.WARNING),
    ("down and taken out of service", unhealthy(unschedulable=True), 1, Severity.WARNING),
    (
        "short of disk with work on it",
        unhealthy(ready=True, conditions=(condition("DiskPressure"),)),
        1,
        Severity.WARNING,
    ),
]


@pytest.mark.parametrize(("name", "given", "pods", "severity"), SEVERITIES, ids=names(SEVERITIES))
def test_how_bad_it_is(name: str, given: NodeFact, pods: int, severity: Severity) -> None:
    held = [holding(f"p{number}", "n1", 4) for number in range(pods)]
    finding = only(evaluate(RULE, rule_context(RULE, nodes=[given], pods=held), None))
    assert finding.severity is severity
    assert ("Bound to it: 1 pod with 4 GPUs." in text(finding)) == bool(pods)


@pytest.mark.parametrize(
    ("silent", "says"),
    [(None, "so the machine and its network are up"), (NOW - 290, "does not respond either (timed out)")],
)
def test_the_agent_tells_a_dead_kubelet_from_a_dead_machine(silent: float | None, says: str) -> None:
    heard = AgentFact(target="n1:9835", node="n1", received_at=NOW - 1, silent_since=silent, error="timed out")
    assert says in text(only(evaluate(RULE, rule_context(RULE, nodes=[unhealthy()], agents=[heard]), None)))


def flapping(*steps: tuple[bool | None, float]) -> list[int]:
    """Number of findings after each step: a readiness, and the seconds before now at which it began."""
    memory, counts = None, []
    for ready, ago in steps:
        given = unhealthy(ready=ready, ready_since=NOW - ago)
        detected = evaluate(RULE, rule_context(RULE, nodes=[given], now=NOW - ago + 5), memory)
        memory = detected.memory
        counts.append(sum(finding.cause == "flapping" for finding in detected.findings))
    return counts


LIVES: list[tuple[str, list[tuple[bool | None, float]], list[int]]] = [
    ("three changes", [(True, 90_000), (None, 900), (True, 600), (None, 300)], [0, 0, 0, 1]),
    ("one reboot has four conditions but two changes", [(True, 90_000), (None, 900), (False, 600), (True, 500)], [0, 0, 0, 0]),
    ("too far apart", [(True, 90_000), (None, 4000), (True, 2000), (None, 300)], [0, 0, 0, 0]),
    ("down and up between two looks", [(True, 90_000), (None, 900), (True, 800), (True, 300)], [0, 0, 0, 1]),
    ("it stays so until it has been quiet", [(None, 900), (True, 600), (None, 300), (True, 200), (True, 200)], [0, 0, 1, 1, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "steps", "expect"), LIVES, ids=names(LIVES))
def test_flapping(name: str, steps: list[tuple[bool | None, float]], expect: list[int]) -> None:
    assert flapping(*steps) == expect


def test_a_flapping_node_is_counted_and_forgotten() -> None:
    memory = {"n1": {"ready": True, "since": NOW - 600, "changes": [NOW - 900, NOW - 700, NOW - 600]}}
    finding = only(evaluate(RULE, rule_context(RULE, nodes=[unhealthy(ready=True, ready_since=NOW - 600)]), memory))
    assert "3 changes in 15 min" in text(finding)
    assert "变化了 3 次" in text(finding, "zh")
    later = evaluate(
        RULE, rule_context(RULE, nodes=[unhealthy(ready=True, ready_since=NOW - 600)], now=NOW + 1801), memory
    )
    assert (later.findings, later.memory) == ((), {})
    assert evaluate(RULE, rule_context(RULE, nodes=[]), memory).memory == {}


@pytest.mark.parametrize("sources", [unseen("nodes"), STANDALONE])
def test_what_cannot_be_seen_is_held(sources: Any) -> None:
    history = detect([RULE], {}, rule_context(RULE, nodes=[unhealthy()]), DetectionHistory()).history
    for nodes in ([], [unhealthy(ready=True)]):
        held = detect([RULE], {}, rule_context(RULE, nodes=nodes, sources=sources), history).findings
        assert [(finding.cause, finding.held) for finding in held] == [("kubelet-silent", True)]
    assert (
        detect([RULE], {}, rule_context(RULE, nodes=[]), history).findings == ()
    )  # the node is gone, and that is known


@pytest.mark.parametrize(
    ("rule", "on", "explained"),
    [
        ("gpu-zombie", "n1", True),
        ("pod-stuck-terminating", "n1", True),
        ("agent-silent", "n1", True),
        ("gpu-zombie", "n2", False),
        ("disk-full", "n1", False),  # may be why the node is down
    ],
)
def test_what_it_explains(rule: str, on: str, explained: bool) -> None:
    finding = only(evaluate(RULE, rule_context(RULE, nodes=[unhealthy()]), None))
    other = Finding(rule=rule, severity=Severity.WARNING, cause="x", labels={"node": on}, headline=Text(key="x"))
    assert any(scope.covers(other) for scope in finding.explains) is explained


def test_pressure_explains_nothing_else_on_the_node() -> None:
    given = unhealthy(ready=True, conditions=(condition("DiskPressure"),))
    assert only(evaluate(RULE, rule_context(RULE, nodes=[given]), None)).explains == ()


def test_an_agent_of_another_node_says_nothing() -> None:
    finding = only(evaluate(RULE, rule_context(RULE, nodes=[unhealthy()], agents=[agent("n2")]), None))
    assert "agent" not in text(finding)
    assert finding.explains == (Scope(labels={"node": "n1"}, rules=finding.explains[0].rules),)


DUE: list[tuple[str, NodeFact, dict[str, Any] | None, float | None]] = [
    ("well", unhealthy(ready=True, ready_since=NOW - 90_000), None, None),
    ("joining", unhealthy(created_at=NOW - 60, ready_since=NOW - 60), None, NOW + 240),
    ("down", unhealthy(), None, NOW + 1500),
    ("a change leaves the window", unhealthy(ready=True, ready_since=NOW - 600), None, NOW + 1200),
    ("of several the first", unhealthy(ready=True, ready_since=NOW - 600), {"ready": True, "since": NOW - 600, "changes": [NOW - 900, NOW - 600]}, NOW + 900),
    ("memory of another version", unhealthy(ready=True, ready_since=NOW - 600), {"changes": "x"}, NOW + 1200),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "memory", "due"), DUE, ids=names(DUE))
def test_when_time_alone_may_change_the_result(
    name: str, given: NodeFact, memory: dict[str, Any] | None, due: float | None
) -> None:
    engine = Engine([RULE], {}, history_of(RULE, {"n1": memory} if memory else None))
    engine.evaluate(rule_context(RULE, nodes=[given]))
    assert engine.next_at == due


def test_limits_that_elapse_count_without_a_change() -> None:
    limits = {"node-down": Limits(NodeLimits(after=310))}
    engine, given = Engine([RULE], limits), rule_context(RULE, nodes=[unhealthy()])
    assert (engine.evaluate(given), engine.next_at) == ((), NOW + 10)
    assert [each.cause for each in engine.evaluate(replace(given, now=NOW + 10))] == ["kubelet-silent"]


def test_the_pods_of_a_node_that_is_down_are_counted_when_they_change() -> None:
    engine = Engine([RULE], {})
    engine.evaluate(rule_context(RULE, nodes=[unhealthy()], pods=[holding("p", "n1", 4)]))
    (finding,) = engine.evaluate(rule_context(RULE, nodes=[unhealthy()], now=NOW + 1))
    assert (finding.severity, "Bound to it" in text(finding)) == (Severity.WARNING, False)
