"""Garbage is collected on a schedule instead of automatically."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from monitor.base.garbage import FULL_EVERY_COUNT, GarbageCollection


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


def test_an_older_cycle_is_freed_in_the_end() -> None:
    cycle, collection = Cycle(), GarbageCollection()
    collection.step()
    gone = weakref.ref(cycle)
    del cycle
    for _ in range(FULL_EVERY_COUNT - 1):
        assert gone() is not None
        collection.step()
    assert gone() is None


def test_automatic_collection_returns_at_the_end() -> None:
    collection = GarbageCollection()
    collection.start()
    assert not gc.isenabled()
    collection.stop()
    assert gc.isenabled()
