"""The week: every shape of every outage at times derived from a seed, without mutual interference."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterable, Iterator, Sequence

from monitor.detect.rules import RULES
from tests.scorecard import shapes_disk, shapes_gpu, shapes_nodes, shapes_pods, shapes_queue
from tests.scorecard.allowed import over_within
from tests.scorecard.model import EVERYWHERE, Occurrence, Shape
from tests.scorecard.scene import BEGIN, NODES

DAY = 86400.0
WEEK = 7 * DAY
FIRST = 2 * 3600.0  # an ordinary night comes first
GAP = 45 * 60.0  # between two outages that could be mistaken for one


def _shapes_of_tests() -> Iterator[Shape]:
    """Shapes that a rule's own test defines as SHAPES."""
    for rule in RULES:
        name = f"tests.detect.rules.test_{rule.rule.replace('-', '_')}"
        if importlib.util.find_spec(name) is not None:
            yield from getattr(importlib.import_module(name), "SHAPES", ())


COMMON_SHAPES: tuple[Shape, ...] = (
    *shapes_disk.SHAPES,
    *shapes_gpu.SHAPES,
    *shapes_pods.SHAPES,
    *shapes_queue.SHAPES,
    *shapes_nodes.SHAPES,
)
SHAPES_OF_TESTS = tuple(_shapes_of_tests())
SHAPES = (*COMMON_SHAPES, *SHAPES_OF_TESTS)


def plan(seed: int, shapes: Sequence[Shape] = SHAPES, length: float = WEEK) -> tuple[Occurrence, ...]:
    """When and where each shape happens. Shapes that need most room are placed first, those of tests last.

    So a new shape of a rule's test does not move any other.
    """
    chance = random.Random(seed)
    order = sorted(
        shapes, key=lambda shape: (shape in SHAPES_OF_TESTS, EVERYWHERE not in shape.locks, -shape.lasts, shape.name)
    )
    placed: list[Occurrence] = []
    for number, shape in enumerate(order):
        placed.append(_place(shape, f"o{number:03d}", placed, chance, length))
    return tuple(sorted(placed, key=lambda each: each.begin))


def _place(shape: Shape, name: str, placed: Iterable[Occurrence], chance: random.Random, length: float) -> Occurrence:
    last = length - shape.lasts - settles(shape)
    for _ in range(5000):
        node = f"gpu{chance.randint(1, NODES):02d}"
        found = Occurrence(shape, name, node, BEGIN + chance.randint(int(FIRST), int(last)))
        if not any(_disturb(found, other) for other in placed):
            return found
    raise AssertionError(f"no room for {shape.name}")


def settles(shape: Shape) -> float:
    """Time after a shape by which its last alert is resolved."""
    return max((over_within(tell.rule, tell.cause) for tell in shape.tells), default=0.0)


def _disturb(one: Occurrence, other: Occurrence) -> bool:
    shared = one.locks & other.locks or EVERYWHERE in one.locks | other.locks
    first, second = sorted((one, other), key=lambda each: each.begin)
    return bool(shared) and second.begin < first.end + max(GAP, settles(first.shape))
