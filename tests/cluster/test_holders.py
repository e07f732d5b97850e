"""Fate of holders, zombies, and the processes of a holder: the decisions that rules, cleanup and reports share."""

from __future__ import annotations

import pytest

from monitor.cluster.holders import (
    PodFate,
    ended_holders,
    has_live_holder,
    holder_fate,
    processes_of,
    zombie_holders,
)
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.kube import PodFact
from tests.cluster.builders import NOW, agent, pod, process, uuid

LIVE = Holder(pod_uid="uid-live", live=True, by=("process",))
UNSURE = Holder(pod_uid="uid-unsure", live=None, by=("process",))
ZOMBIE = Holder(pod_uid="uid-zombie", live=False, by=("pod-resources", "process"))
ALLOCATED = Holder(pod_uid="uid-allocated", live=False, by=("pod-resources",))
GPU = GpuView(node="n1", state=GpuState.BUSY, index=0, uuid=uuid(0), holders=(LIVE, UNSURE, ZOMBIE, ALLOCATED))


@pytest.mark.parametrize(
    ("holder", "known", "expect"),
    [
        (LIVE, pod(), PodFate.LIVE),
        (LIVE, None, PodFate.LIVE),
        (UNSURE, None, PodFate.UNSURE),
        (ZOMBIE, None, PodFate.DELETED),
        (ZOMBIE, pod(phase="Succeeded"), PodFate.FINISHED),
        (ZOMBIE, pod(phase="Failed"), PodFate.FINISHED),
        (ZOMBIE, pod(deletion_at=NOW - 600), PodFate.TERMINATING),
    ],
)
def test_fate(holder: Holder, known: PodFact | None, expect: PodFate) -> None:
    assert holder_fate(holder, known) is expect


def test_ended_holders_and_zombies() -> None:
    assert ended_holders(GPU) == (ZOMBIE, ALLOCATED)
    assert zombie_holders(GPU) == (ZOMBIE,)
    assert has_live_holder(GPU)
    assert not has_live_holder(GpuView(node="n1", state=GpuState.BUSY, index=0, holders=(UNSURE, ZOMBIE)))


def test_processes_are_those_of_the_pod_on_the_gpu() -> None:
    mine, other, none = process(1, pod_uid="uid-zombie"), process(2, pod_uid="uid-live"), process(3)
    elsewhere = process(4, index=1, pod_uid="uid-zombie")
    snapshot = agent(processes=(mine, other, none, elsewhere)).snapshot
    assert processes_of("uid-zombie", GPU, snapshot) == (mine,)
    assert processes_of(None, GPU, snapshot) == (none,)
    assert processes_of("uid-zombie", GPU, None) == ()
