"""Totals over all GPUs, from view to view."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest

from monitor.facts.cluster import ClusterView, GpuState, GpuView
from monitor.present.gpu_totals import GpuCounter


def gpus(node: str, chance: random.Random) -> tuple[GpuView, ...]:
    return tuple(
        GpuView(
            node=node,
            index=index,
            state=chance.choice(list(GpuState)),
            utilization_ratio=chance.choice((None, 0.1, 0.7)),
        )
        for index in range(chance.randrange(4))
    )


def test_after_any_changes_the_totals_are_those_of_all_gpus() -> None:
    chance, kept, nodes = random.Random(2), GpuCounter(), dict[str, tuple[GpuView, ...]]()
    for _ in range(200):
        for number in chance.sample(range(12), 3):
            nodes[f"n{number}"] = gpus(f"n{number}", chance)
        nodes.pop(f"n{chance.randrange(12)}", None)
        everything = tuple(gpu for each in nodes.values() for gpu in each)
        view = ClusterView(at=1.0, gpus=everything).with_known_nodes(
            {name: each for name, each in nodes.items() if each}
        )
        totals, known = (
            kept.totals(view),
            [gpu.utilization_ratio for gpu in everything if gpu.utilization_ratio is not None],
        )
        assert totals.states == Counter(gpu.state for gpu in everything)
        assert totals.utilization_ratio == (pytest.approx(sum(known) / len(known)) if known else None)


def test_a_changed_view_is_not_mistaken_for_the_one_that_it_was_made_from() -> None:
    view = ClusterView(at=1.0, gpus=gpus("a", random.Random(1))).with_known_nodes({})
    other = GpuView(node="b", index=0, state=GpuState.FREE)
    assert msgspec.structs.replace(view, gpus=(other,)).gpus_by_node == {"b": (other,)}


def test_without_a_known_utilization_there_is_no_mean() -> None:
    assert GpuCounter().totals(ClusterView(at=1.0)).utilization_ratio is None
