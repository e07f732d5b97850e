"""The store converges, whatever the order and number of events."""

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


def watch_event(kind: str, fact: PodFact) -> WatchEvent[PodFact]:
    return WatchEvent(kind, fact.uid, fact.resource_version, fact)


def undecodable(uid: str, rv: int) -> WatchEvent[PodFact]:
    return WatchEvent("MODIFIED", uid, str(rv), None, problem="odd")


def held(store: ObjectStore[PodFact]) -> dict[str, PodFact]:
    return {item.uid: item for item in store.snapshot().items}


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[PodFact], int, list[WatchEvent[PodFact]]]:
    """History of a cluster: a list at some version, and all events before and after it, in order."""
    alive: dict[str, PodFact] = {}
    listed: list[PodFact] = []
    events = []
    created = 0
    steps = draw(st.integers(1, 40))
    list_at = draw(st.integers(0, steps))
    for version in range(1, steps + 1):
        name = draw(st.sampled_from("abc"))  # few names, so that new objects reuse them
        known = alive.get(name)
        what = draw(st.sampled_from(("MODIFIED", "MODIFIED", "DELETED", "ODD"))) if known else "ADDED"
        created += known is None
        fact = pod(name, known.uid if known else f"{name}{created}", version)
        if what == "DELETED":
            del alive[name]
        else:
            alive[name] = fact
        events.append(undecodable(fact.uid, version) if what == "ODD" else watch_event(what, fact))
        if version == list_at:
            listed = list(alive.values())
    return listed, list_at, events


def replayed(listed: Sequence[PodFact], version: int, events: Sequence[WatchEvent[PodFact]]) -> ObjectStore[PodFact]:
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
    newer = [event for event in events if int(event.resource_version or 0) > version]
    in_order = replayed(listed, version, newer)
    shuffled = newer + [dice.choice(events) for _ in range(repeats)]  # including some from before the list
    dice.shuffle(shuffled)
    other = replayed(listed, version, shuffled)
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
    store = replayed([pod("a", "1", 1)], 1, [])
    first = store.snapshot()
    assert store.snapshot() is first
    store.apply(watch_event("MODIFIED", pod("a", "1", 1)))
    assert store.snapshot() is first, "an outdated event changes nothing"
    store.apply(watch_event("MODIFIED", pod("a", "1", 2)))
    assert store.snapshot().version == first.version + 1
    assert first.items == (pod("a", "1", 1),), "a snapshot is immutable"


def test_the_same_list_again_is_no_change() -> None:
    store = replayed([pod("a", "1", 1)], 1, [])
    before = store.version
    assert store.replace([pod("a", "1", 1)], "9") == []
    assert (store.version, store.resource_version) == (before, "9")


def test_a_list_brings_back_what_was_deleted() -> None:
    """After etcd was restored from a backup, the list is authoritative."""
    store = replayed([pod("a", "1", 1)], 1, [watch_event("DELETED", pod("a", "1", 5))])
    store.replace([pod("a", "1", 1)], "3")
    store.apply(watch_event("MODIFIED", pod("a", "1", 4)))
    assert held(store) == {"1": pod("a", "1", 4)}


def test_memory_of_deletions_is_bounded() -> None:
    store: ObjectStore[Any] = ObjectStore()
    for number in range(MAX_TOMBSTONES + 100):
        store.apply(watch_event("DELETED", pod("a", str(number), number)))
    assert len(store._tombstones) == MAX_TOMBSTONES
