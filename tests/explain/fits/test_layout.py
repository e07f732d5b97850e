"""Distribution over free room: whatever node the scheduler picks for each pod, a proposed split fits."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.explain.fits.layout import NodeRoom, Placed, Sized, Split, as_requested, equal_sizes, splits


def rooms(*gpus: int, size: int = 1, slots: int | None = None) -> list[NodeRoom]:
    return [NodeRoom(f"n{index}", free // size, free, slots, "A100") for index, free in enumerate(gpus)]


@pytest.mark.parametrize(
    ("free", "wanted", "nodes"),
    [
        ((8, 8), Sized(2, 8), {"n0": 1, "n1": 1}),
        ((8, 7), Sized(2, 8), None),
        ((16, 8), Sized(2, 8), {"n0": 2}),  # as few nodes as possible
        ((8, 4, 16), Sized(1, 4), {"n1": 1}),  # the fullest node that has room
        ((3, 3), Sized(1, 4), None),
        ((), Sized(1, 1), None),
    ],
)
def test_as_requested(free: tuple[int, ...], wanted: Sized, nodes: dict[str, int] | None) -> None:
    placed = as_requested(rooms(*free, size=wanted.gpus), wanted)
    assert (None if placed is None else {each.node: each.pods for each in placed}) == nodes


def test_one_gpu_model_is_preferred() -> None:
    mixed = [NodeRoom("a", 1, 8, None, "A100"), NodeRoom("h0", 1, 8, None, "H100"), NodeRoom("h1", 1, 8, None, "H100")]
    assert as_requested(mixed, Sized(2, 8)) == [Placed("h0", 1, 8), Placed("h1", 1, 8)]
    assert {each.node for each in as_requested(mixed, Sized(3, 8)) or ()} == {"a", "h0", "h1"}
    assert [each.ways for each in splits(mixed, 16, 16)] == [[Sized(2, 8)]]


def test_nodes_with_gpus_that_are_usable_come_first() -> None:
    broken = NodeRoom("a", 1, 8, None, None, clean=False)
    assert as_requested([broken, NodeRoom("b", 1, 8)], Sized(1, 8)) == [Placed("b", 1, 8)]


@pytest.mark.parametrize(
    ("free", "total", "asked", "ways"),
    [
        ((8, 8), 16, 16, [[Sized(2, 8)]]),
        ((8, 4, 4), 16, 16, [[Sized(4, 4)], [Sized(1, 8), Sized(2, 4)]]),
        ((8, 4, 4), 16, 8, [[Sized(4, 4)], [Sized(1, 8), Sized(2, 4)]]),
        ((12, 6, 6), 24, 24, [[Sized(4, 6)], [Sized(1, 12), Sized(2, 6)]]),
        ((5, 3), 8, 8, [[Sized(8, 1)], [Sized(1, 4), Sized(1, 2), Sized(2, 1)]]),
        ((7, 7), 16, 8, []),
        ((8,), 1, 1, []),
        ((3, 3), 6, 6, [[Sized(2, 3)]]),
    ],
)
def test_splits(free: tuple[int, ...], total: int, asked: int, ways: list[list[Sized]]) -> None:
    assert [each.ways for each in splits(rooms(*free), total, asked)] == ways


def test_slots_of_pods_count() -> None:
    assert [each.ways for each in splits(rooms(8, 8, slots=1), 8, 8)] == [[Sized(2, 4)]]
    assert splits(rooms(8, 4, slots=0), 12, 12) == []


def test_sizes_of_equal_pods() -> None:
    assert equal_sizes(12, 6) == [Sized(1, 12), Sized(3, 4), Sized(4, 3), Sized(6, 2), Sized(12, 1)]
    assert equal_sizes(1, 1) == []


@dataclass
class Free:
    """A node as the scheduler sees it."""

    gpus: int
    slots: int

    def takes(self, gpus: int) -> bool:
        return self.gpus >= gpus and self.slots >= 1

    def take(self, gpus: int) -> None:
        self.gpus -= gpus
        self.slots -= 1


NODES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), min_size=1, max_size=6)


@settings(max_examples=400)
@given(NODES, st.integers(1, 48), st.integers(1, 48), st.randoms(use_true_random=False))
def test_whatever_nodes_the_scheduler_picks_a_split_fits(
    nodes: list[tuple[int, int]], total: int, asked: int, chance: object
) -> None:
    given_rooms = [NodeRoom(f"n{index}", 0, gpus, slots) for index, (gpus, slots) in enumerate(nodes)]
    for split in splits(given_rooms, total, asked):
        assert sum(each.pods * each.gpus for each in split.ways) == total
        _check_placed(split, nodes)
        free = [Free(gpus, slots) for gpus, slots in nodes]
        for pods, gpus in split.ways:
            for _ in range(pods):
                able = [node for node in free if node.takes(gpus)]
                assert able, (nodes, split)
                chance.choice(able).take(gpus)  # type: ignore[attr-defined]


def _check_placed(split: Split, nodes: list[tuple[int, int]]) -> None:
    """The nodes that are named have room for what is placed on them."""
    assert sum(each.pods * each.gpus for each in split.placed) == sum(each.pods * each.gpus for each in split.ways)
    for index, (gpus, slots) in enumerate(nodes):
        here = [each for each in split.placed if each.node == f"n{index}"]
        assert sum(each.pods * each.gpus for each in here) <= gpus
        assert sum(each.pods for each in here) <= slots


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(2, 40))
def test_single_gpus_are_always_found(free: list[int], total: int) -> None:
    """Where nodes have enough GPUs in total, there is a split; where they have not, there is none."""
    assert bool(splits(rooms(*free), total, total)) == (sum(free) >= total)
