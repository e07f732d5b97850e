"""Garbage is collected on a schedule instead of automatically."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from monitor.base import garbage
from monitor.base.garbage import GarbageCollection


class Cycle:
    """An object that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _without_automatic_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_a_young_cycle_is_freed_by_the_next_step() -> None:
    gone = weakref.ref(Cycle())
    assert gone() is not None
    GarbageCollection().step()
    assert gone() is None


@pytest.mark.parametrize(("promotions", "steps"), [(1, garbage.MIDDLE_EVERY_COUNT), (2, garbage.FULL_EVERY_COUNT)])
def test_an_older_cycle_is_freed_within_its_number_of_steps(promotions: int, steps: int) -> None:
    cycle = Cycle()
    for generation in range(promotions):
        gc.collect(generation)
    gone, collection = weakref.ref(cycle), GarbageCollection()
    del cycle
    for _ in range(steps):
        assert gone() is not None
        collection.step()
    assert gone() is None


def test_automatic_collection_returns_at_the_end() -> None:
    collection = GarbageCollection()
    collection.start()
    assert not gc.isenabled()
    collection.stop()
    assert gc.isenabled()
