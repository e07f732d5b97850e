# ruff: noqa: E501  # tables: one row is one line
from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.detect.rules.pod_stuck_terminating import CAUSES, RULE, Limits
from monitor.facts.cluster import GpuState
from monitor.facts.gpu import GpuProcessFact
from monitor.facts.kube import PodFact
from monitor.facts.storage import MountFact
from monitor.facts.text import Evidence
from tests.detect.builders_pods import PODS_UNSEEN, after_change, due, held, none, one, text
from tests.explain.builders import NOW, agent, event, gpu_view, node, owned, pod, running_container, view

READY = [node("n1")]
BUSY = event("FailedUnmount", "UnmountVolume.TearDown failed: device is busy")
HUNG = agent("n1", mounts=(MountFact(path="/mnt/nas", state="hung", since=NOW - 900),))
STUCK = GpuProcessFact(
    gpu_uuid="g", pid=7, name="python", kind="compute", state="D", state_since=NOW - 600, pod_uid="uid-bert-0"
)


def ending(overdue: float = 301, **more: Any) -> PodFact:
    fields: dict[str, Any] = {
        "node": "n1",
        "phase": "Running",
        "deletion_at": NOW - overdue,
        "deletion_grace_seconds": 30.0,
        "statuses": (running_container(),),
    }
    return pod(**(fields | more))


IN_D = Evidence(key="process-state", values={"pid": 7, "state": "D", "process": "python", "since": NOW - 600})
IDLE_GPU, STUCK_GPU = (
    view(cards=[gpu_view("n1", 0, GpuState.BUSY, ending(), evidence=evidence)]) for evidence in ((), (IN_D,))
)
CASES: list[tuple[str, PodFact, dict[str, Any], str, str]] = [
    ("only a finalizer", ending(finalizers=("lab.io/hold",), statuses=()), {"nodes": READY}, "finalizer", "lab.io/hold"),
    ("it ended well and has a finalizer", ending(finalizers=("lab.io/hold",), statuses=(), phase="Succeeded"), {"nodes": READY}, "finalizer", "lab.io/hold"),
    ("its node is silent", ending(), {"nodes": [node("n1", ready=None)]}, "node-down", "n1"),
    ("its node is gone", ending(), {"nodes": [node("n2")]}, "node-down", "n1"),
    ("a volume is busy", ending(), {"nodes": READY, "events": [BUSY]}, "volume-busy", "device is busy"),
    ("a mount hangs", ending(), {"nodes": READY, "agents": [HUNG]}, "volume-busy", "/mnt/nas"),
    ("a process in D", ending(), {"nodes": READY, "agents": [agent("n1", gpu_processes=(STUCK,))]}, "d-state", "python"),
    ("the runtime cannot", ending(), {"nodes": READY, "events": [event("FailedKillPod", "error killing pod: context deadline exceeded")]}, "runtime-hung", "context deadline exceeded"),
    ("nobody says why", ending(), {"nodes": READY}, "runtime-hung", "5 min 1 s"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "facts", "cause", "says"), CASES, ids=[case[0] for case in CASES])
def test_each_cause(name: str, given: PodFact, facts: dict[str, Any], cause: str, says: str) -> None:
    finding = one(RULE, pods=[given], identities=owned(bert_0="li"), **facts)
    assert finding.cause == cause, text(finding)
    assert says in text(finding)
    assert "li" in text(finding)
    assert "5 分钟 1 秒" in text(finding, "zh")
    assert finding.since == given.deletion_at


def test_every_cause_has_a_case() -> None:
    assert {case[3] for case in CASES} == set(CAUSES)


def test_it_says_which_gpus_are_kept() -> None:
    assert "4 GPUs" in text(one(RULE, pods=[ending(gpus=4)], nodes=READY))


QUIET = [
    ("not yet", ending(overdue=299)),
    ("a long grace time that is not over", ending(overdue=-3000, deletion_grace_seconds=3600.0)),
    ("nobody deleted it", ending(deletion_at=None)),
]


@pytest.mark.parametrize(("name", "given"), QUIET, ids=[case[0] for case in QUIET])
def test_not_stuck(name: str, given: PodFact) -> None:
    """`deletion_at` has the grace time in it already: adding it again would say half of it too late."""
    assert none(RULE, pods=[given], nodes=READY)


def test_a_limit_of_its_own() -> None:
    assert none(RULE, limits=Limits(overdue=900), pods=[ending()], nodes=READY)


def test_held_while_pods_cannot_be_seen() -> None:
    before = {"pods": [ending()], "nodes": READY}
    assert [left.held for left in held(RULE, before, {"view": PODS_UNSEEN})] == [True]
    assert held(RULE, before, {}) == ()


def test_when_time_alone_changes_it() -> None:
    assert due(RULE, pods=[ending(overdue=-60)], nodes=READY) == 360
    assert due(RULE, pods=[ending()], nodes=READY) == 30
    assert due(RULE, pods=[ending(deletion_at=None)], nodes=READY) is None


def test_it_says_how_long_the_mount_hangs_not_how_long_the_pod_is_overdue() -> None:
    assert "has not responded for 15 min;" in text(one(RULE, pods=[ending()], nodes=READY, agents=[HUNG]))


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("a mount hangs", {"agents": [agent("n1", mounts=())]}, {"agents": [HUNG]}, "volume-busy"),
    ("a process in D", {"agents": [agent("n1")]}, {"agents": [agent("n1", gpu_processes=(STUCK,))]}, "d-state"),
    ("its node is silent", {}, {"nodes": [node("n1", ready=None)]}, "node-down"),
    ("its agent is silent", {"agents": [HUNG]}, {"agents": [replace(HUNG, silent_since=NOW)]}, "runtime-hung"),
    ("its GPU says why", {"view": IDLE_GPU}, {"view": STUCK_GPU}, "d-state"),
]


@pytest.mark.parametrize(("name", "before", "after", "cause"), CHANGES, ids=[case[0] for case in CHANGES])
def test_a_change_changes_the_cause(name: str, before: dict[str, Any], after: dict[str, Any], cause: str) -> None:
    given = {"pods": [ending()], "nodes": READY}
    assert [finding.cause for finding in after_change(RULE, given | before, given | after)] == [cause]
