"""Outage of the metrics store: one finding instead of a thousand. Plans read the agent itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from monitor.cleanup.inputs import Planner, PlannerDeps
from monitor.cleanup.plan.pods import FRESH_SECONDS
from monitor.cleanup.policy import ImagePolicy
from monitor.detect.engine import DetectionHistory, detect
from monitor.detect.meta.monitor import BLIND_AFTER_SECONDS, STARTUP_GRACE_SECONDS, MonitorState, with_monitor_findings
from monitor.detect.rules import agent_silent, node_down
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.i18n import say
from tests.detect.builders_nodes import SEEN, rule_context
from tests.explain.builders import NOW, agent, node

WHY = "prometheus.lab:9090 cannot be reached: Connection refused"
OUT = (*SEEN[:2], SourceView(name="prometheus", ok=False, why=WHY, since=NOW - 600))
WELL = (*SEEN, SourceView(name="prometheus", ok=True))


def out_of_sight(name: str) -> AgentFact:
    return msgspec.structs.replace(
        agent(name), received_at=NOW - 700, silent_since=NOW - 600, error=WHY, failures=40
    )  # fmt: skip


def test_agents_that_are_out_of_sight_with_their_store_are_not_silent() -> None:
    agents, nodes = [out_of_sight(f"gpu-{n}") for n in range(3)], [node(f"gpu-{n}") for n in range(4)]
    rules = (agent_silent.RULE, node_down.RULE)
    seen = detect(
        rules, {}, rule_context(rules[0], sources=WELL, agents=agents[:1], nodes=nodes[:1]), DetectionHistory()
    )
    assert [finding.labels for finding in seen.findings] == [{"node": "gpu-0"}]
    found = detect(rules, {}, rule_context(rules[0], sources=OUT, agents=agents, nodes=nodes), seen.history)
    assert [(finding.labels, finding.held) for finding in found.findings] == [({"node": "gpu-0"}, True)]


def test_what_is_known_of_a_node_that_is_down_does_not_come_from_a_store_that_is_gone() -> None:
    down = [node("gpu-0", ready=False, ready_since=NOW - 900)]
    for sources, told in ((WELL, True), (OUT, False)):
        seen = rule_context(node_down.RULE, sources=sources, agents=[out_of_sight("gpu-0")], nodes=down)
        (finding,) = node_down.detect(seen, None).findings
        assert any(note.key == "node-down.agent-silent" for note in finding.evidence) is told


def test_the_one_finding_is_about_the_store() -> None:
    agents = [out_of_sight(f"gpu-{n}") for n in range(1000)]
    sight = MonitorState(NOW - 600 - STARTUP_GRACE_SECONDS, NOW, OUT, agents)
    (own,) = with_monitor_findings((), sight, NOW)
    assert (own.cause, own.labels, own.severity) == ("prometheus", {"service": "monitor/prometheus"}, "critical")
    assert WHY in say("en", own.headline.key, own.headline.values)
    recent = msgspec.structs.replace(OUT[-1], since=NOW - BLIND_AFTER_SECONDS + 1)
    assert (
        with_monitor_findings(
            (), MonitorState(NOW - 600 - STARTUP_GRACE_SECONDS, NOW, (*SEEN[:2], recent), agents), NOW
        )
        == ()
    )
    (deaf,) = with_monitor_findings((), MonitorState(NOW - 600 - STARTUP_GRACE_SECONDS, NOW, WELL, agents), NOW)
    assert deaf.cause == "agents"


def test_a_plan_goes_by_what_the_agent_says_and_each_is_asked_once() -> None:
    asked: list[str] = []
    known = (agent("n1"), agent("n2"), msgspec.structs.replace(agent("n3"), received_at=NOW - FRESH_SECONDS - 1))

    def ask(name: str) -> AgentFact | None:
        asked.append(name)
        return agent(name, images=()) if name == "n1" else AgentFact(target="x", node=name, silent_since=NOW)

    nothing: Any = None
    cluster: Any = SimpleNamespace(poller=SimpleNamespace(facts=lambda: known), fetch_agent=ask)
    gatherer = Planner(PlannerDeps(cluster, nothing, None, lambda _: None, lambda _: None), lambda: NOW)
    told = gatherer.current_agents
    assert (len(told), list(told), asked) == (3, ["n1", "n2", "n3"], [])
    assert [told["n1"].snapshot, told["n1"].snapshot] == [agent("n1", images=()).snapshot] * 2
    assert (asked, told.get("n9")) == (["n1"], None)
    assert gatherer.snapshots().keys() == {"n1", "n2"}  # what is due is determined without reading an agent
    assert asked == ["n1"]
    refused = gatherer.plan(ImagePolicy(name="p"), "n2")
    assert refused.refused is not None
    assert refused.refused.key.endswith("images-unknown")
    assert asked == ["n1", "n2"]
