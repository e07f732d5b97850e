"""The index of facts: all pods at once give the same as one after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import pytest

from monitor.facts.cluster import Identity
from monitor.facts.facts_index import FactsIndex, KnownPod
from monitor.facts.kube import PodFact

PODS = {
    pod.uid: KnownPod(pod, Identity(user=f"user of {pod.uid}"))
    for pod in (
        PodFact(uid="runs", name="a", namespace="x", phase="Running", node="n1", requests={"cpu": 2.0, "gpu": 1.0}),
        PodFact(uid="runs too", name="b", namespace="x", phase="Running", node="n1", requests={"cpu": 1.0}),
        PodFact(uid="finished", name="c", namespace="x", phase="Succeeded", node="n1", requests={"cpu": 4.0}),
        PodFact(uid="finished elsewhere", name="d", namespace="x", phase="Failed", node="n2"),
        PodFact(uid="waits", name="e", namespace="x", phase="Pending"),
        PodFact(uid="is nominated", name="f", namespace="x", phase="Pending", nominated_node="n3"),
        PodFact(uid="is deleted", name="g", namespace="x", phase="Pending", deletion_at=1.0, nominated_node="n3"),
        PodFact(uid="finished unscheduled", name="h", namespace="x", phase="Failed", nominated_node="n3"),
    )
}


def put_one_by_one(index: FactsIndex, uids: Iterable[str] = PODS) -> None:
    for uid in uids:
        index.put_pods({uid: PODS[uid]})


def put_at_once(index: FactsIndex) -> None:
    index.put_pods(PODS)


def put_again_after_all_went(index: FactsIndex) -> None:
    put_at_once(index)
    index.put_pods(dict.fromkeys(PODS))
    put_at_once(index)


def indexed(put: Callable[[FactsIndex], None]) -> dict[str, object]:
    index = FactsIndex()
    put(index)
    return {
        field.name: getattr(index.facts, field.name)
        for field in dataclasses.fields(index.facts)
        if field.name != "gpu_nodes"
    }


@pytest.mark.parametrize("put", [put_at_once, put_again_after_all_went])
def test_all_pods_at_once_are_indexed_like_one_after_the_other(put: Callable[[FactsIndex], None]) -> None:
    assert indexed(put) == indexed(put_one_by_one)


def test_pods_are_found_by_what_they_occupy() -> None:
    facts = indexed(put_at_once)
    assert facts["used"] == {"n1": {"pods": 2.0, "cpu": 3.0, "gpu": 1.0}}
    assert set(facts["finished"]) == {"n1", "n2"}  # type: ignore[call-overload]
    assert set(facts["pending_by_uid"]) == {"waits", "is nominated"}  # type: ignore[call-overload]
    assert {node: [pod.uid for pod in pods] for node, pods in facts["nominated"].items()} == {  # type: ignore[attr-defined]
        "n3": ["is nominated", "is deleted"]
    }
