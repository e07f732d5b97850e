"""The agents' pods are those that a search among all pods would find, after any changes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from monitor.cluster.agents.targets import AgentPods
from monitor.facts.kube import PodFact
from monitor.kube.store import ObjectChange

LABEL = {"app": "agent"}


def pod(uid: str = "1", **changed: Any) -> PodFact:
    values: dict[str, Any] = {
        "uid": uid, "name": f"agent-{uid}", "namespace": "gpu", "labels": LABEL, "pod_ip": f"10.0.0.{uid}",
        "phase": "Running", "node": f"node-{uid}",
    }  # fmt: skip
    return PodFact(**(values | changed))


def test_a_running_agent_is_a_target_on_its_node() -> None:
    agents = AgentPods("app=agent", 9835)
    agents.note([ObjectChange(None, pod("1")), ObjectChange(None, pod("2", pod_ip="fd00::2"))])
    assert agents.targets() == {"10.0.0.1:9835": "node-1", "[fd00::2]:9835": "node-2"}


@pytest.mark.parametrize(
    "changed",
    [{"labels": {}}, {"labels": {"app": "other"}}, {"phase": "Failed"}, {"pod_ip": None}, {"namespace": "mine"}],
)
def test_a_pod_that_is_no_agent_is_not_a_target_and_stops_being_one(changed: dict[str, Any]) -> None:
    agents = AgentPods("app=agent", 9835, "gpu")
    agents.note([ObjectChange(None, pod(**changed))])
    assert not agents.targets()
    agents.note([ObjectChange(None, pod())])
    assert agents.targets()
    agents.note([ObjectChange(pod(), pod(**changed))])
    assert not agents.targets()


def test_a_label_without_a_value_stands_for_any() -> None:
    agents = AgentPods("app", 1)
    agents.note([ObjectChange(None, pod("1", labels={"app": ""})), ObjectChange(None, pod("2", labels={"x": "y"}))])
    assert agents.targets() == {"10.0.0.1:1": "node-1"}


def test_after_any_changes_the_targets_are_those_of_all_pods() -> None:
    chance, agents, known = random.Random(5), AgentPods("app=agent", 1), dict[str, PodFact]()
    for _ in range(500):
        uid = str(chance.randrange(20))
        phase, labels = chance.choice(["Running", "Pending", "Failed"]), chance.choice([LABEL, {}])
        new = None if chance.random() < 0.2 else pod(uid, phase=phase, labels=labels, pod_ip=f"10.1.0.{uid}")
        agents.note([ObjectChange(known.pop(uid, None), new)])
        known |= {uid: new} if new is not None else {}
        complete = AgentPods("app=agent", 1)
        complete.note([ObjectChange(None, each) for each in known.values()])
        assert agents.targets() == complete.targets()
