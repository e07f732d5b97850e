"""Agents in the view: they come, go, change their names, and may be two on one node. Nothing of that flaps."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.cluster.view import ClusterContext, ViewBuilder, ViewChanges, ViewInputs
from monitor.facts import ContainerFact, ContainerUsageFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, Identity
from tests.cluster.builders import NOW, agent, card, node, pod, process

KNOWN = ClusterContext(pods_known=True)


def builder(*agents: AgentFact) -> ViewBuilder:
    made = ViewBuilder(lambda _: Identity(user="li"))
    made.build(ViewInputs(agents=agents, around=KNOWN), NOW)
    return made


def at(target: str, node: str = "n1", received_at: float = NOW - 1, cards: int = 1) -> AgentFact:
    spoken = agent(*(card(i, node) for i in range(cards)), node=node, received_at=received_at)
    return msgspec.structs.replace(spoken, target=target)


def names(view: ClusterView) -> list[tuple[str, int]]:
    return [(each.name, sum(gpu.node == each.name for gpu in view.gpus)) for each in view.nodes]


def test_an_agent_that_is_gone_takes_its_node_along() -> None:
    made = builder(at("a:1", "n1"), at("b:1", "n2"))
    assert names(made.update(ViewChanges(gone=frozenset({"a:1"})), NOW)) == [("n2", 1)]
    assert made.targets == {"b:1"}
    assert not [key for key in made.memory.cards if key.startswith("n1")]


def test_but_not_a_node_that_kubernetes_knows() -> None:
    made = ViewBuilder(lambda _: Identity())
    made.build(ViewInputs(agents=(at("a:1"),), nodes=(node("n1", 1),), around=KNOWN), NOW)
    view = made.update(ViewChanges(gone=frozenset({"a:1"})), NOW)
    assert [(each.name, each.has_agent) for each in view.nodes] == [("n1", False)]
    assert [gpu.state.value for gpu in view.gpus] == ["unknown"]


def test_one_that_was_never_there_is_no_loss() -> None:
    assert names(builder(at("a:1")).update(ViewChanges(gone=frozenset({"z:1"})), NOW)) == [("n1", 1)]


def test_an_agent_goes_by_its_address_until_it_has_spoken() -> None:
    made = builder(AgentFact(target="a:1", silent_since=NOW - 5, failures=1))
    assert names(made.update(ViewChanges(), NOW)) == [("a:1", 0)]
    assert names(made.update(ViewChanges(agents=(at("a:1"),)), NOW)) == [("n1", 1)]
    assert names(made.update(ViewChanges(agents=(at("a:1", "renamed"),)), NOW)) == [("renamed", 1)]


@pytest.mark.parametrize("order", [("old:1", "new:1"), ("new:1", "old:1")])
def test_of_two_on_one_node_the_one_heard_last_counts(order: tuple[str, str]) -> None:
    """The pod of an agent is replaced: the old one is not forgotten yet, and asking it fails."""
    told = {"old:1": at("old:1", received_at=NOW - 20, cards=1), "new:1": at("new:1", received_at=NOW - 1, cards=2)}
    told["old:1"] = msgspec.structs.replace(told["old:1"], silent_since=NOW - 10, failures=2, error="refused")
    made = builder(*(told[target] for target in order))
    assert names(made.update(ViewChanges(), NOW)) == [("n1", 2)]
    for target in order:
        view = made.update(ViewChanges(agents=(told[target],)), NOW)
        assert names(view) == [("n1", 2)]
        assert view.nodes[0].silent_since is None
    assert names(made.update(ViewChanges(gone=frozenset({"old:1"})), NOW)) == [("n1", 2)]


def test_and_when_it_goes_the_other_one() -> None:
    made = builder(at("a:1", received_at=NOW - 1, cards=2), at("b:1", received_at=NOW - 5, cards=1))
    assert names(made.update(ViewChanges(gone=frozenset({"a:1"})), NOW)) == [("n1", 1)]
    assert names(made.update(ViewChanges(gone=frozenset({"b:1"})), NOW)) == []


def using(target: str, received_at: float, cores: float) -> AgentFact:
    container = ContainerFact(id="c1", runtime="docker", state="running", pod_uid="uid-p")
    use = ContainerUsageFact(container_id="c1", cpu_cores=cores)
    spoken = agent(
        card(), processes=(process(1),), received_at=received_at, containers=(container,), container_usage=(use,)
    )
    return msgspec.structs.replace(spoken, target=target)


def test_what_pods_use_follows_the_agent_that_counts() -> None:
    made = ViewBuilder(lambda _: Identity(user="li"))
    first, second = using("a:1", NOW - 2, 1.0), using("b:1", NOW - 1, 2.0)
    made.build(ViewInputs(agents=(first,), pods=(pod("p"),), around=KNOWN), NOW)

    def cores(changes: ViewChanges) -> float | None:
        return made.update(changes, NOW).pods[0].usage.cpu_cores

    assert cores(ViewChanges()) == 1.0
    assert cores(ViewChanges(agents=(second,))) == 2.0
    assert cores(ViewChanges(agents=(first,))) == 2.0, "old news"
    assert cores(ViewChanges(gone=frozenset({"b:1"}))) == 1.0
    assert cores(ViewChanges(gone=frozenset({"a:1"}))) is None, "nobody says so any more"


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_changes_one_by_one_end_in_the_view_of_all_at_once(seed: int) -> None:
    """Targets come, speak for one node or another, fall silent and go, in any order."""
    chance = random.Random(seed)
    made, now = builder(), NOW
    living: dict[str, AgentFact] = {}
    for _ in range(40):
        now += 1
        target = f"{chance.choice('abcd')}:1"
        if target in living and chance.random() < 0.3:
            del living[target]
            view = made.update(ViewChanges(gone=frozenset({target})), now)
        else:
            spoken = at(target, f"n{chance.randrange(3)}", received_at=now, cards=chance.randrange(3))
            if target in living and chance.random() < 0.4:
                spoken = msgspec.structs.replace(living[target], silent_since=now, failures=1, error="no")
            living[target] = spoken
            view = made.update(ViewChanges(agents=(spoken,)), now)
    view = made.update(ViewChanges(again=frozenset(made.node_names)), now)
    whole = ViewBuilder(lambda _: Identity(user="li"), memory=made.memory).build(
        ViewInputs(agents=tuple(living.values()), around=KNOWN), now
    )
    assert view == whole
