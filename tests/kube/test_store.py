"""The store ends up the same, whatever order word of a change comes in, and however often."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.facts.kube import PodFact
from monitor.kube.decode.stream import WatchEvent
from monitor.kube.store import MAX_TOMBSTONES, ObjectChange, ObjectStore


def pod(name: str, uid: str, rv: int | str) -> PodFact:
    return PodFact(uid=uid, name=name, namespace="lab", resource_version=str(rv))


def said(kind: str, fact: PodFact) -> WatchEvent[PodFact]:
    return WatchEvent(kind, fact.uid, fact.resource_version, fact)


def misunderstood(uid: str, rv: int) -> WatchEvent[PodFact]:
    return WatchEvent("MODIFIED", uid, str(rv), None, problem="odd")


def held(store: ObjectStore[PodFact]) -> dict[str, PodFact]:
    return {item.uid: item for item in store.snapshot().items}


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[PodFact], int, list[WatchEvent[PodFact]]]:
    """What happens in a cluster: a list at some version, and all changes from before and after it, in order."""
    alive: dict[str, PodFact] = {}
    listed: list[PodFact] = []
    events = []
    made = 0
    steps = draw(st.integers(1, 40))
    list_at = draw(st.integers(0, steps))
    for version in range(1, steps + 1):
        name = draw(st.sampled_from("abc"))  # few names, so that they are used again by new objects
        was = alive.get(name)
        what = draw(st.sampled_from(("MODIFIED", "MODIFIED", "DELETED", "ODD"))) if was else "ADDED"
        made += was is None
        fact = pod(name, was.uid if was else f"{name}{made}", version)
        if what == "DELETED":
            del alive[name]
        else:
            alive[name] = fact
        events.append(misunderstood(fact.uid, version) if what == "ODD" else said(what, fact))
        if version == list_at:
            listed = list(alive.values())
    return listed, list_at, events


def played(listed: Sequence[PodFact], version: int, events: Sequence[WatchEvent[PodFact]]) -> ObjectStore[PodFact]:
    store: ObjectStore[PodFact] = ObjectStore()
    store.replace(listed, str(version))
    for event in events:
        store.apply(event)
    return store


@settings(max_examples=300, deadline=None)
@given(histories(), st.integers(0, 2**32), st.integers(0, 20))
def test_reordered_delayed_and_repeated_events_give_the_same_store(
    history: tuple[list[PodFact], int, list[WatchEvent[PodFact]]], seed: int, repeats: int
) -> None:
    listed, version, events = history
    dice = random.Random(seed)
    news = [event for event in events if int(event.resource_version or 0) > version]
    in_order = played(listed, version, news)
    shuffled = news + [dice.choice(events) for _ in range(repeats)]  # among them some from before the list
    dice.shuffle(shuffled)
    other = played(listed, version, shuffled)
    assert held(other) == held(in_order)
    assert other.resource_version == in_order.resource_version


@settings(max_examples=100, deadline=None)
@given(histories())
def test_changes_told_add_up_to_what_is_held(
    history: tuple[list[PodFact], int, list[WatchEvent[PodFact]]],
) -> None:
    listed, version, events = history
    store: ObjectStore[PodFact] = ObjectStore()
    mirror: dict[str, PodFact] = {}

    def take(changes: Sequence[ObjectChange[PodFact]]) -> None:
        for change in changes:
            assert change.old == (mirror.pop(change.old.uid) if change.old else None)
            if change.new:
                assert change.new.uid not in mirror
                mirror[change.new.uid] = change.new

    take(store.replace(listed, str(version)))
    for event in events:
        change = store.apply(event)
        take([change] if change else [])
    take(store.replace(listed, str(version)))
    assert held(store) == mirror == {item.uid: item for item in listed}


def test_a_snapshot_is_made_once_per_change() -> None:
    store = played([pod("a", "1", 1)], 1, [])
    first = store.snapshot()
    assert store.snapshot() is first
    store.apply(said("MODIFIED", pod("a", "1", 1)))
    assert store.snapshot() is first, "old news changes nothing"
    store.apply(said("MODIFIED", pod("a", "1", 2)))
    assert store.snapshot().version == first.version + 1
    assert first.items == (pod("a", "1", 1),), "who holds a snapshot keeps it"


def test_the_same_list_again_is_no_change() -> None:
    store = played([pod("a", "1", 1)], 1, [])
    before = store.version
    assert store.replace([pod("a", "1", 1)], "9") == []
    assert (store.version, store.resource_version) == (before, "9")


def test_a_list_brings_back_what_was_deleted() -> None:
    """A backup of etcd was restored: the list is the truth, not what we remember."""
    store = played([pod("a", "1", 1)], 1, [said("DELETED", pod("a", "1", 5))])
    store.replace([pod("a", "1", 1)], "3")
    store.apply(said("MODIFIED", pod("a", "1", 4)))
    assert held(store) == {"1": pod("a", "1", 4)}


def test_memory_of_deletions_is_bounded() -> None:
    store: ObjectStore[Any] = ObjectStore()
    for number in range(MAX_TOMBSTONES + 100):
        store.apply(said("DELETED", pod("a", str(number), number)))
    assert len(store._graves) == MAX_TOMBSTONES
