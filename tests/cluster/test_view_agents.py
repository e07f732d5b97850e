"""Agents in the view: they appear, disappear, change names, and may be two on one node, without flapping."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ClusterContext, ViewChanges, ViewInputs
from monitor.facts import ContainerFact, ContainerUsageFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, Identity
from tests.cluster.builders import NOW, agent, card, node, pod, process

KNOWN = ClusterContext(pods_known=True)


def built(*agents: AgentFact) -> ViewBuilder:
    builder = ViewBuilder(lambda _: Identity(user="li"))
    builder.build(ViewInputs(agents=agents, around=KNOWN), NOW)
    return builder


def at(target: str, node: str = "n1", received_at: float = NOW - 1, cards: int = 1) -> AgentFact:
    """Agent at a target that has answered."""
    fact = agent(*(card(i, node) for i in range(cards)), node=node, received_at=received_at)
    return msgspec.structs.replace(fact, target=target)


def names(view: ClusterView) -> list[tuple[str, int]]:
    return [(node.name, sum(gpu.node == node.name for gpu in view.gpus)) for node in view.nodes]


def test_an_agent_that_is_gone_takes_its_node_along() -> None:
    builder = built(at("a:1", "n1"), at("b:1", "n2"))
    assert names(builder.update(ViewChanges(gone=frozenset({"a:1"})), NOW).view()) == [("n2", 1)]
    assert builder.targets == {"b:1"}
    assert not [key for key in builder.memory.cards if key.startswith("n1")]


def test_but_not_a_node_that_kubernetes_knows() -> None:
    builder = ViewBuilder(lambda _: Identity())
    builder.build(ViewInputs(agents=(at("a:1"),), nodes=(node("n1", 1),), around=KNOWN), NOW)
    view = builder.update(ViewChanges(gone=frozenset({"a:1"})), NOW).view()
    assert [(node.name, node.has_agent) for node in view.nodes] == [("n1", False)]
    assert [gpu.state.value for gpu in view.gpus] == ["unknown"]


def test_one_that_was_never_there_is_no_loss() -> None:
    assert names(built(at("a:1")).update(ViewChanges(gone=frozenset({"z:1"})), NOW).view()) == [("n1", 1)]


def test_an_agent_goes_by_its_address_until_it_has_spoken() -> None:
    builder = built(AgentFact(target="a:1", silent_since=NOW - 5, failures=1))
    assert names(builder.update(ViewChanges(), NOW).view()) == [("a:1", 0)]
    assert names(builder.update(ViewChanges(agents=(at("a:1"),)), NOW).view()) == [("n1", 1)]
    assert names(builder.update(ViewChanges(agents=(at("a:1", "renamed"),)), NOW).view()) == [("renamed", 1)]


@pytest.mark.parametrize("order", [("old:1", "new:1"), ("new:1", "old:1")])
def test_of_two_on_one_node_the_one_heard_last_counts(order: tuple[str, str]) -> None:
    """The pod of an agent is replaced: the old target is still known, and polling it fails."""
    facts = {"old:1": at("old:1", received_at=NOW - 20, cards=1), "new:1": at("new:1", received_at=NOW - 1, cards=2)}
    facts["old:1"] = msgspec.structs.replace(facts["old:1"], silent_since=NOW - 10, failures=2, error="refused")
    builder = built(*(facts[target] for target in order))
    assert names(builder.update(ViewChanges(), NOW).view()) == [("n1", 2)]
    for target in order:
        view = builder.update(ViewChanges(agents=(facts[target],)), NOW).view()
        assert names(view) == [("n1", 2)]
        assert view.nodes[0].silent_since is None
    assert names(builder.update(ViewChanges(gone=frozenset({"old:1"})), NOW).view()) == [("n1", 2)]


def test_and_when_it_goes_the_other_one() -> None:
    builder = built(at("a:1", received_at=NOW - 1, cards=2), at("b:1", received_at=NOW - 5, cards=1))
    assert names(builder.update(ViewChanges(gone=frozenset({"a:1"})), NOW).view()) == [("n1", 1)]
    assert names(builder.update(ViewChanges(gone=frozenset({"b:1"})), NOW).view()) == []


def using(target: str, received_at: float, cores: float) -> AgentFact:
    container = ContainerFact(id="c1", runtime="docker", state="running", pod_uid="uid-p")
    use = ContainerUsageFact(container_id="c1", cpu_cores=cores)
    fact = agent(
        card(), processes=(process(1),), received_at=received_at, containers=(container,), container_usage=(use,)
    )
    return msgspec.structs.replace(fact, target=target)


def test_what_pods_use_follows_the_agent_that_counts() -> None:
    builder = ViewBuilder(lambda _: Identity(user="li"))
    first, second = using("a:1", NOW - 2, 1.0), using("b:1", NOW - 1, 2.0)
    builder.build(ViewInputs(agents=(first,), pods=(pod("p"),), around=KNOWN), NOW)

    def cores(changes: ViewChanges) -> float | None:
        return builder.update(changes, NOW).view().pods[0].usage.cpu_cores

    assert cores(ViewChanges()) == 1.0
    assert cores(ViewChanges(agents=(second,))) == 2.0
    assert cores(ViewChanges(agents=(first,))) == 2.0, "an older fact"
    assert cores(ViewChanges(gone=frozenset({"b:1"}))) == 1.0
    assert cores(ViewChanges(gone=frozenset({"a:1"}))) is None, "no agent reports it"


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_changes_one_by_one_end_in_the_view_of_all_at_once(seed: int) -> None:
    """Targets appear, report one node or another, fall silent and disappear, in any order."""
    rng = random.Random(seed)
    builder, now = built(), NOW
    present: dict[str, AgentFact] = {}
    for _ in range(40):
        now += 1
        target = f"{rng.choice('abcd')}:1"
        if target in present and rng.random() < 0.3:
            del present[target]
            view = builder.update(ViewChanges(gone=frozenset({target})), now).view()
        else:
            fact = at(target, f"n{rng.randrange(3)}", received_at=now, cards=rng.randrange(3))
            if target in present and rng.random() < 0.4:
                fact = msgspec.structs.replace(present[target], silent_since=now, failures=1, error="no")
            present[target] = fact
            view = builder.update(ViewChanges(agents=(fact,)), now).view()
    view = builder.update(ViewChanges(again=frozenset(builder.node_names)), now).view()
    whole = ViewBuilder(lambda _: Identity(user="li"), memory=builder.memory).build(
        ViewInputs(agents=tuple(present.values()), around=KNOWN), now
    )
    assert view == whole.view()
