"""Every node is due once per cycle, evenly spread; and the status line."""

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
NO_NODES = frozenset[str]()


def due_at(nodes: list[str], ticks: list[float]) -> list[frozenset[str]]:
    schedule = RejoinSchedule(CYCLE)
    return [schedule.due(nodes, NO_NODES, now)[0] for now in ticks]


@pytest.mark.parametrize(("count", "steps"), [(1, 100), (7, 100), (100, 100), (1000, 20), (3, 3), (50, 1)])
def test_every_node_comes_up_once_a_cycle_and_evenly(count: int, steps: int) -> None:
    nodes = [f"n{number}" for number in range(count)]
    ticks = [step_number * CYCLE / steps for step_number in range(steps * 3 + 1)]
    due = due_at(nodes, ticks)
    for begin in (steps, steps * 2):  # the first cycle begins with all nodes waiting
        seen = Counter(name for names in due[begin + 1 : begin + steps + 1] for name in names)
        assert seen == Counter(nodes)
    share = count / steps
    assert max(len(names) for names in due) <= share + 1, "no step exceeds its share"


def test_a_round_begins_once_a_cycle() -> None:
    schedule = RejoinSchedule(CYCLE)
    began = [now for now in range(35) if schedule.due(["a"], NO_NODES, float(now))[1]]
    assert began == [0, 10, 20, 30]


def test_after_a_stall_everybody_who_waited_comes_up_at_once() -> None:
    nodes = [f"n{number}" for number in range(10)]
    schedule = RejoinSchedule(CYCLE)
    schedule.due(nodes, NO_NODES, 0.0)
    first, _ = schedule.due(nodes, NO_NODES, 3.0)
    late, new_cycle = schedule.due(nodes, NO_NODES, 60.0)
    assert new_cycle
    assert first | late == set(nodes)
    assert not first & late


def test_who_was_heard_in_this_round_is_not_joined_again_in_it() -> None:
    schedule = RejoinSchedule(CYCLE)
    schedule.due(["a", "b"], frozenset({"a"}), 0.0)
    assert schedule.due(["a", "b"], NO_NODES, 9.9)[0] == {"b"}
    schedule.due(["a", "b"], NO_NODES, 10.0)
    assert schedule.due(["a", "b"], NO_NODES, 19.9)[0] == {"a", "b"}


def test_nobody_there() -> None:
    schedule = RejoinSchedule(CYCLE)
    assert [schedule.due((), NO_NODES, now) for now in (0.0, 1.0, 10.0)] == [
        (frozenset(), True), (frozenset(), False), (frozenset(), True),
    ]  # fmt: skip


@given(st.integers(0, 2**32), st.floats(0.05, 12.0))
@settings(max_examples=100, deadline=None)
def test_nobody_who_stays_waits_for_more_than_two_cycles(seed: int, step: float) -> None:
    """Nodes appear and disappear at any time. A new node is joined when it appears, then on schedule."""
    rng = random.Random(seed)
    schedule, now = RejoinSchedule(CYCLE), 0.0
    last: dict[str, float] = {f"n{number}": 0.0 for number in range(rng.randrange(40))}
    for _ in range(200):
        if rng.random() < 0.3:
            last[f"n{rng.randrange(10**6)}"] = now
        if last and rng.random() < 0.3:
            del last[rng.choice(sorted(last))]
        heard = frozenset(name for name in sorted(last) if rng.random() < 0.2)  # joined in this step anyway
        due, _ = schedule.due(tuple(last), heard, now)
        assert not due & heard
        for name in (due | heard) & last.keys():
            last[name] = now
        assert all(now - at <= 2 * CYCLE + step for at in last.values())
        now += step


def card(state: GpuState) -> GpuView:
    return GpuView(node="n1", state=state, index=0)


@pytest.mark.parametrize(
    ("name", "view", "line"),
    [
        ("an empty view", ClusterView(at=0), "nodes=0 pods=0 gpus: none unseen=-"),
        ("all sources are available",
         ClusterView(
             at=0,
             nodes=(NodeView(name="n1"), NodeView(name="n2")),
             pods=(PodView(uid="u", name="p", namespace="n", phase=None, identity=Identity()),),
             gpus=(card(GpuState.FREE), card(GpuState.IDLE_HELD), card(GpuState.FREE)),
             sources=(SourceView(name="pods", ok=True),)),
         "nodes=2 pods=1 gpus: free=2 idle-held=1 unseen=-"),
        ("sources are missing",
         ClusterView(at=0, sources=(SourceView(name="kubernetes", ok=False), SourceView(name="agents", ok=False))),
         "nodes=0 pods=0 gpus: none unseen=kubernetes,agents"),
    ],
)  # fmt: skip
def test_the_line_of_each_cycle(name: str, view: ClusterView, line: str) -> None:
    assert status_line(view) == line
