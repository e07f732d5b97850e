"""Every node comes up once a cycle, evenly; and the line that says how the cluster fares. Pure."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.cluster.live import status_line
from monitor.cluster.rejoin import RejoinSchedule
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Identity, NodeView, PodView, SourceView

CYCLE = 10.0
NOBODY = frozenset[str]()


def deal(nodes: list[str], ticks: list[float]) -> list[frozenset[str]]:
    rounds = RejoinSchedule(CYCLE)
    return [rounds.due(nodes, NOBODY, now)[0] for now in ticks]


@pytest.mark.parametrize(("count", "beats"), [(1, 100), (7, 100), (100, 100), (1000, 20), (3, 3), (50, 1)])
def test_every_node_comes_up_once_a_cycle_and_evenly(count: int, beats: int) -> None:
    nodes = [f"n{number}" for number in range(count)]
    ticks = [beat * CYCLE / beats for beat in range(beats * 3 + 1)]
    dealt = deal(nodes, ticks)
    for begin in (beats, beats * 2):  # the first round has only begun when there is nobody yet to be dealt
        seen = Counter(name for names in dealt[begin + 1 : begin + beats + 1] for name in names)
        assert seen == Counter(nodes)
    share = count / beats
    assert max(len(names) for names in dealt) <= share + 1, "no beat has more to do than its share"


def test_a_round_begins_once_a_cycle() -> None:
    rounds = RejoinSchedule(CYCLE)
    began = [now for now in range(35) if rounds.due(["a"], NOBODY, float(now))[1]]
    assert began == [0, 10, 20, 30]


def test_after_a_stall_everybody_who_waited_comes_up_at_once() -> None:
    nodes = [f"n{number}" for number in range(10)]
    rounds = RejoinSchedule(CYCLE)
    rounds.due(nodes, NOBODY, 0.0)
    first, _ = rounds.due(nodes, NOBODY, 3.0)
    late, new_round = rounds.due(nodes, NOBODY, 60.0)
    assert new_round
    assert first | late == set(nodes)
    assert not first & late


def test_who_was_heard_in_this_round_is_not_joined_again_in_it() -> None:
    rounds = RejoinSchedule(CYCLE)
    rounds.due(["a", "b"], frozenset({"a"}), 0.0)
    assert rounds.due(["a", "b"], NOBODY, 9.9)[0] == {"b"}
    rounds.due(["a", "b"], NOBODY, 10.0)
    assert rounds.due(["a", "b"], NOBODY, 19.9)[0] == {"a", "b"}


def test_nobody_there() -> None:
    rounds = RejoinSchedule(CYCLE)
    assert [rounds.due((), NOBODY, now) for now in (0.0, 1.0, 10.0)] == [
        (frozenset(), True), (frozenset(), False), (frozenset(), True),
    ]  # fmt: skip


@given(st.integers(0, 2**32), st.floats(0.05, 12.0))
@settings(max_examples=100, deadline=None)
def test_nobody_who_stays_waits_for_more_than_two_cycles(seed: int, step: float) -> None:
    """Nodes come and go at any time. One that has come is joined as it comes; from then on it has its turn."""
    chance = random.Random(seed)
    rounds, now = RejoinSchedule(CYCLE), 0.0
    last: dict[str, float] = {f"n{number}": 0.0 for number in range(chance.randrange(40))}
    for _ in range(200):
        if chance.random() < 0.3:
            last[f"n{chance.randrange(10**6)}"] = now
        if last and chance.random() < 0.3:
            del last[chance.choice(sorted(last))]
        heard = frozenset(name for name in sorted(last) if chance.random() < 0.2)  # it is joined then
        dealt, _ = rounds.due(tuple(last), heard, now)
        assert not dealt & heard
        for name in (dealt | heard) & last.keys():
            last[name] = now
        assert all(now - at <= 2 * CYCLE + step for at in last.values())
        now += step


def card(state: GpuState) -> GpuView:
    return GpuView(node="n1", state=state, index=0)


@pytest.mark.parametrize(
    ("name", "view", "line"),
    [
        ("nothing", ClusterView(at=0), "nodes=0 pods=0 gpus: none unseen=-"),
        ("all is seen",
         ClusterView(
             at=0,
             nodes=(NodeView(name="n1"), NodeView(name="n2")),
             pods=(PodView(uid="u", name="p", namespace="n", phase=None, identity=Identity()),),
             gpus=(card(GpuState.FREE), card(GpuState.IDLE_HELD), card(GpuState.FREE)),
             sources=(SourceView(name="pods", ok=True),)),
         "nodes=2 pods=1 gpus: free=2 idle-held=1 unseen=-"),
        ("some is not",
         ClusterView(at=0, sources=(SourceView(name="kubernetes", ok=False), SourceView(name="agents", ok=False))),
         "nodes=0 pods=0 gpus: none unseen=kubernetes,agents"),
    ],
)  # fmt: skip
def test_the_line_of_each_cycle(name: str, view: ClusterView, line: str) -> None:
    assert status_line(view) == line
