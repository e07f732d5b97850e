# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.correlation import explained
from monitor.detect.engine import Engine
from monitor.detect.rules import pod_start_failed, pod_stuck_creating
from monitor.explain.volumes import classify, server_of
from monitor.facts.findings import Finding
from monitor.facts.kube import PodFact, PodVolumeFact
from tests.detect.builders_pods import PODS_UNSEEN, held, rule_context, run, text
from tests.explain.builders import NOW, event, pod, waiting

HOOK = "OCI runtime create failed: error running hook #0: stderr: nvidia-container-cli: {}: unknown"
MISMATCH = HOOK.format("initialization error: nvml error: driver/library version mismatch")
NOT_LOADED = HOOK.format("initialization error: nvml error: driver not loaded")
TOO_OLD = HOOK.format("requirement error: unsatisfied condition: cuda>=12.8")
TOOLKIT = HOOK.format("ldcache error: process /sbin/ldconfig terminated with signal 9")
CDI = "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=0"


def failing(name: str, message: str, node: str = "n1", **more: Any) -> PodFact:
    status = waiting("RunContainerError", message)
    return pod(name, **({"node": node, "phase": "Running", "statuses": (status,)} | more))


def shown(findings: tuple[Finding, ...]) -> list[Finding]:
    """Findings that no other one explains."""
    return [finding for finding in explained(findings) if finding.explained_by is None]


@pytest.mark.parametrize("message", [MISMATCH, NOT_LOADED, TOOLKIT, CDI])
def test_pods_that_share_a_fault_of_their_node_are_one_finding_about_the_node(message: str) -> None:
    pods = [failing(f"p{number}", message) for number in range(7)]
    findings = run(pod_start_failed.RULE, pods=pods).findings
    assert len(findings) == 8
    (node,) = shown(findings)
    assert (node.labels, node.cause, node.headline.key) == ({"node": "n1"}, "gpu-driver", "pod-start-failed.node")
    assert text(node).startswith("7 pods on n1")
    assert "team-a/p0, team-a/p1, team-a/p2, team-a/p3, team-a/p4 …" in text(node)
    assert node.advice == findings[0].advice
    assert node.raw == findings[0].raw
    assert "7 个 Pod" in text(node, "zh")


ALONE: list[tuple[str, list[PodFact]]] = [
    ("one pod", [failing("a", MISMATCH)]),
    ("two containers of one pod", [failing("a", MISMATCH, statuses=(waiting("RunContainerError", MISMATCH), waiting("RunContainerError", MISMATCH, name="side")))]),
    ("two nodes", [failing("a", MISMATCH), failing("b", MISMATCH, "n2")]),
    ("two faults", [failing("a", MISMATCH), failing("b", TOOLKIT)]),
    ("a fault of the image", [failing("a", TOO_OLD), failing("b", TOO_OLD)]),
    ("two programs", [failing("a", 'exec: "x": permission denied'), failing("b", 'exec: "x": permission denied')]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "pods"), ALONE, ids=[case[0] for case in ALONE])
def test_what_does_not_concern_a_whole_node(name: str, pods: list[PodFact]) -> None:
    findings = run(pod_start_failed.RULE, pods=pods).findings
    assert all("pod" in finding.labels for finding in findings)
    assert shown(findings) == list(findings)


def test_a_pod_that_fails_for_another_reason_stays_a_finding_of_its_own() -> None:
    pods = [failing("a", MISMATCH), failing("b", MISMATCH), failing("c", TOO_OLD)]
    left = shown(run(pod_start_failed.RULE, pods=pods).findings)
    assert {finding.labels.get("pod") for finding in left} == {"c", None}


def test_the_node_follows_its_pods() -> None:
    engine = Engine((pod_start_failed.RULE,), {})
    both = [failing("a", MISMATCH), failing("b", MISMATCH)]
    assert len(engine.evaluate(rule_context(pods=both))) == 3
    assert [finding.labels["pod"] for finding in engine.evaluate(rule_context(pods=both[:1]))] == ["a"]
    assert [left.held for left in held(pod_start_failed.RULE, {"pods": both}, {"view": PODS_UNSEEN})] == [True] * 3


NFS = 'MountVolume.SetUp failed for volume "{0}" : mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs -o vers=4.1 10.0.0.20:/{0} /var/lib/kubelet/pods/x/volumes/kubernetes.io~nfs/{0}\nOutput: mount.nfs: Connection timed out'
NO_EXPORT = NFS.replace(
    "Connection timed out", "mounting 10.0.0.20:/{0} failed, reason given by server: No such file or directory"
)
TIMED_OUT = "Unable to attach or mount volumes: unmounted volumes=[data]: timed out waiting for the condition"
CEPH = 'MountVolume.MountDevice failed for volume "{0}" : rpc error: code = Internal desc = an error (exit status 32) occurred while running mount args: [-t ceph 10.0.0.1:6789,10.0.0.2:6789:/volumes/{0} /x -o name=node] stderr: mount error 110 = Connection timed out'
RBD = 'MountVolume.MountDevice failed for volume "{0}" : rpc error: code = Internal desc = rbd: map failed with error an error (exit status 110) occurred while running rbd args: [--id node -m 10.0.0.1:6789,10.0.0.2:6789 --keyfile=***stripped*** map pool/{0} --device-type krbd], rbd error output: rbd: map failed: (110) Connection timed out'
ON_NFS = (PodVolumeFact(name="data", kind="nfs", server="10.0.0.20", path="/home"),)


def unmounted(*messages: str, **more: Any) -> dict[str, Any]:
    """Pods `p0`, `p1`, ... on nodes of their own, each with an event about its volume."""
    fields: dict[str, Any] = {"started_at": NOW - 400, "statuses": (waiting("ContainerCreating"),)}
    pods = [pod(f"p{number}", node=f"n{number}", **(fields | more)) for number in range(len(messages))]
    volumes = [message.format(f"v{number}") for number, message in enumerate(messages)]
    events = [event("FailedMount", message, about=each) for each, message in zip(pods, volumes, strict=True)]
    return {"pods": pods, "events": events}


SERVERS: list[tuple[str, dict[str, Any], str]] = [
    ("NFS", unmounted(NFS, NFS, NFS), "10.0.0.20"),
    ("the volume names the server", unmounted(TIMED_OUT, TIMED_OUT, TIMED_OUT, volumes=ON_NFS), "10.0.0.20"),
    ("CephFS", unmounted(CEPH, CEPH, CEPH), "10.0.0.1:6789,10.0.0.2:6789"),
    ("both of one Ceph cluster", unmounted(CEPH, RBD, RBD), "10.0.0.1:6789,10.0.0.2:6789"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "facts", "server"), SERVERS, ids=[case[0] for case in SERVERS])
def test_pods_that_cannot_mount_from_one_server_are_one_finding_about_it(
    name: str, facts: dict[str, Any], server: str
) -> None:
    findings = run(pod_stuck_creating.RULE, **facts).findings
    assert len(findings) == 4
    (found,) = shown(findings)
    assert found.headline.key == "pod-stuck-creating.server"
    assert text(found).startswith(f"3 pods on 3 nodes cannot mount volumes from storage server {server}.")
    assert set(found.labels) == {"service"}
    assert "3 个节点上的 3 个 Pod" in text(found, "zh")


@pytest.mark.parametrize(
    "facts",
    [
        unmounted(NFS),
        unmounted(NFS, NFS.replace("10.0.0.20", "10.0.0.21")),
        unmounted(NO_EXPORT, NO_EXPORT),
        unmounted(TIMED_OUT, TIMED_OUT),
    ],
    ids=["one pod", "two servers", "paths that do not exist", "servers that nothing names"],
)
def test_mounts_that_do_not_share_a_server(facts: dict[str, Any]) -> None:
    assert all("pod" in finding.labels for finding in run(pod_stuck_creating.RULE, **facts).findings)


SOURCES: list[tuple[str, str | None]] = [
    ("nas:/data", "nas"),
    ("10.0.0.6@tcp:/lfs", "10.0.0.6@tcp"),
    ("[fd00::1]:/data", "[fd00::1]"),
    ("10.0.0.1:6789,10.0.0.2:6789:/volumes/a", "10.0.0.1:6789,10.0.0.2:6789"),
    ("10.0.0.1:6789:pool/image", "10.0.0.1:6789"),
    ("//smb.lab/share", "smb.lab"),
    ("/mnt/nas", None),
    ("data", None),
    ("", None),
]


@pytest.mark.parametrize(("source", "server"), SOURCES)
def test_the_server_of_a_source(source: str, server: str | None) -> None:
    assert server_of(source) == server


def test_a_message_names_its_source() -> None:
    assert classify(NFS.format("a")).source == "10.0.0.20:/a"
    assert classify(RBD.format("a")).source == "10.0.0.1:6789,10.0.0.2:6789:pool/a"
    assert classify(TIMED_OUT).source is None
