# ruff: noqa: E501  # tables: one row is one line
from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.rules.pod_stuck_creating import CAUSES, RULE, Limits
from monitor.facts.kube import ContainerStatusFact, PodFact, PodVolumeFact
from monitor.facts.storage import MountFact
from tests.detect.builders_pods import PODS_UNSEEN, after_change, due, held, none, one, text
from tests.explain.builders import NOW, agent, event, node, owned, pod, running_container, waiting

DENIED = 'MountVolume.SetUp failed for volume "data": mount.nfs: access denied by server while mounting nas:/data'
TIMED_OUT = "Unable to attach or mount volumes: unmounted volumes=[data]: timed out waiting for the condition"
SECRET = 'MountVolume.SetUp failed for volume "s": secret "token" not found'
DEVICE = 'MountVolume.SetUp failed for volume "d": hostPath type check failed: /dev/nvidia0 is not a character device'
CNI = 'Failed to create pod sandbox: networkPlugin cni failed to set up pod "bert-0": no route'
HUNG = agent("n1", mounts=(MountFact(path="/mnt/nas", state="hung", since=NOW - 900),))
ON_NAS = (PodVolumeFact(name="data", kind="hostPath", path="/mnt/nas/data"),)


def stuck(*statuses: ContainerStatusFact, **more: Any) -> PodFact:
    fields: dict[str, Any] = {
        "node": "n1",
        "started_at": NOW - 301,
        "statuses": statuses or (waiting("ContainerCreating"),),
    }
    return pod(**(fields | more))


READY = {"nodes": [node("n1")]}
CASES: list[tuple[str, PodFact, dict[str, Any], str, str]] = [
    ("the server says no", stuck(), {"events": [event("FailedMount", DENIED)]}, "mount-failed", "nas:/data"),
    ("nothing comes of it", stuck(), {"events": [event("FailedMount", TIMED_OUT)]}, "mount-hung", "data"),
    ("and the node's mount hangs", stuck(), {"events": [event("FailedMount", TIMED_OUT)], "agents": [HUNG]}, "mount-hung", "/mnt/nas on n1"),
    ("nobody says anything, its path hangs", stuck(volumes=ON_NAS), READY | {"agents": [HUNG]}, "mount-hung", "/mnt/nas on n1"),
    ("no network", stuck(), {"events": [event("FailedCreatePodSandBox", CNI)]}, "sandbox", "no route"),
    ("nobody says anything", stuck(), READY | {"agents": [HUNG]}, "sandbox", "5 min 1 s"),
    ("a secret is missing", stuck(), {"events": [event("FailedMount", SECRET)]}, "config-missing", "token"),
    ("a device is missing", stuck(), {"events": [event("FailedMount", DEVICE)]}, "device-missing", "/dev/nvidia0"),
    ("the node has lost its GPUs", stuck(gpus=2), {"nodes": [node("n1", gpus=0)]}, "device-missing", "5 min 1 s"),
    ("after its init container", stuck(waiting("PodInitializing"), ContainerStatusFact(name="i", init=True, state="terminated", exit_code=0, finished_at=NOW - 400)), READY, "sandbox", "5 min"),
    ("beside its sidecar", stuck(running_container(init=True, sidecar=True, started=True, started_at=NOW - 400), waiting("ContainerCreating")), {"events": [event("FailedMount", DENIED)]}, "mount-failed", "nas:/data"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "facts", "cause", "says"), CASES, ids=[case[0] for case in CASES])
def test_each_cause(name: str, given: PodFact, facts: dict[str, Any], cause: str, says: str) -> None:
    finding = one(RULE, pods=[given], identities=owned(bert_0="li"), **facts)
    assert finding.cause == cause, text(finding)
    assert says in text(finding)
    assert "5 分钟 1 秒" in text(finding, "zh")
    assert (finding.labels["pod"], finding.labels["node"]) == ("bert-0", "n1")


def test_every_cause_has_a_case() -> None:
    assert {case[3] for case in CASES} == set(CAUSES)


def test_a_hung_mount_is_named_so_that_its_own_finding_explains_this_one() -> None:
    assert one(RULE, pods=[stuck(volumes=ON_NAS)], agents=[HUNG]).labels["mount"] == "/mnt/nas"


INIT_DONE = ContainerStatusFact(name="i", init=True, state="terminated", exit_code=0, finished_at=NOW - 30)
PULLED = event("Pulled", 'Successfully pulled image "x" in 9m', ago=30, type="Normal")
QUIET: list[tuple[str, PodFact, dict[str, Any]]] = [
    ("not yet", stuck(started_at=NOW - 299), {}),
    ("it pulls", stuck(), {"events": [event("FailedMount", TIMED_OUT, ago=600), event("Pulling", 'Pulling image "x"', ago=500)]}),
    ("it has just pulled", stuck(), {"events": [PULLED]}),
    ("its init container has just ended", stuck(waiting("PodInitializing"), INIT_DONE), {}),
    ("an init container is at work", stuck(running_container(init=True), waiting("PodInitializing")), {}),
    ("a sidecar has just started", stuck(running_container(init=True, sidecar=True, started=True, started_at=NOW - 30), waiting("PodInitializing")), {}),
    ("a sidecar is not ready", stuck(running_container(init=True, sidecar=True), waiting("PodInitializing")), {}),
    ("the pull fails", stuck(waiting("ImagePullBackOff")), {}),
    ("it crashes", stuck(waiting("CrashLoopBackOff")), {}),
    ("it runs", stuck(running_container(), phase="Running"), {}),
    ("it has no node", stuck(node=None), {}),
    ("it is being deleted", stuck(deletion_at=NOW), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "facts"), QUIET, ids=[case[0] for case in QUIET])
def test_not_stuck(name: str, given: PodFact, facts: dict[str, Any]) -> None:
    assert none(RULE, pods=[given], **facts)


def test_a_limit_of_its_own() -> None:
    assert none(RULE, limits=Limits(creating=900), pods=[stuck()])


def test_held_while_pods_cannot_be_seen() -> None:
    before = {"pods": [stuck()]}
    assert [left.held for left in held(RULE, before, {"view": PODS_UNSEEN})] == [True]
    assert held(RULE, before, {}) == ()


def test_when_time_alone_changes_it() -> None:
    assert due(RULE, pods=[stuck(started_at=NOW - 100)]) == 200
    assert due(RULE, pods=[stuck()]) == 30
    assert due(RULE, pods=[stuck(running_container(), phase="Running")]) is None


CHANGES: list[tuple[str, PodFact, dict[str, Any], dict[str, Any], str]] = [
    ("a mount hangs", stuck(volumes=ON_NAS), {"agents": [agent("n1", mounts=())]}, {"agents": [HUNG]}, "mount-hung"),
    ("the node has lost its GPUs", stuck(gpus=2), READY, {"nodes": [node("n1", gpus=0)]}, "device-missing"),
    ("a message", stuck(), READY, READY | {"events": [event("FailedMount", SECRET)]}, "config-missing"),
]


@pytest.mark.parametrize(("name", "given", "before", "after", "cause"), CHANGES, ids=[case[0] for case in CHANGES])
def test_a_change_changes_the_cause(
    name: str, given: PodFact, before: dict[str, Any], after: dict[str, Any], cause: str
) -> None:
    found = after_change(RULE, {"pods": [given]} | before, {"pods": [given]} | after)
    assert [finding.cause for finding in found] == [cause]
