from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.cluster import GpuState
from monitor.facts.gpu import GpuProcessFact
from monitor.facts.kube import ConditionFact, PodFact
from monitor.facts.storage import DiskFact, MountFact
from monitor.facts.text import Evidence
from tests.explain.builders import (
    NOW,
    Case,
    agent,
    check,
    event,
    gpu_view,
    names,
    node,
    pod,
    running_container,
    view,
    waiting,
)

HERE = {"nodes": [node("gpu-01")]}


def deleted(overdue: float = 600, **more: Any) -> PodFact:
    fields: dict[str, Any] = {"node": "gpu-01", "phase": "Running", "gpus": 2, "statuses": (running_container(),)}
    fields |= {"deletion_at": NOW - overdue, "deletion_grace_seconds": 30.0}
    return pod(**(fields | more))


ENDED = (waiting("Completed", state="terminated", exit_code=0),)
STUCK = Evidence(key="process-state", values={"pid": 4242, "state": "D", "since": NOW - 900, "process": "python"})

CASES = [
    Case(
        "its grace time is not over",
        deleted(-20),
        "grace",
        says=("has 20 s left to stop by itself (grace period 30 s)", "Until it is gone, it keeps 2 GPUs on gpu-01"),
        facts=HERE,
    ),
    Case(
        "not even a dead node is to blame within the grace time",
        deleted(-1),
        "grace",
        facts={"nodes": [node("gpu-01", ready=False)]},
    ),
    Case("the node clears it away", deleted(29), "just-ending", facts=HERE),
    Case(
        "30 s later nothing explains it",
        deleted(30),
        "unknown",
        says=("should have terminated 30 s", "Do not force it"),
        facts=HERE,
    ),
    Case(
        "a finalizer",
        deleted(finalizers=("batch.kubernetes.io/job-tracking", "x/y"), statuses=ENDED),
        "finalizer",
        says=(
            "It has ended, but a finalizer keeps it: batch.kubernetes.io/job-tracking, x/y.",
            "Its owner (batch.kubernetes.io)",
            """kubectl patch pod bert-0 -n team-a --type=merge -p '{"metadata":{"finalizers":null}}\'""",
        ),
        facts=HERE,
    ),
    Case(
        "a finalizer of a pod that never had a node",
        deleted(finalizers=("x/y",), statuses=(), node=None, phase="Pending"),
        "finalizer",
        silent=("keeps 2 GPUs",),
        facts=HERE,
    ),
    Case(
        "a finalizer is not the reason while a container still runs",
        deleted(finalizers=("x/y",)),
        "unknown",
        silent=("finalizer",),
        facts=HERE,
    ),
    Case(
        "the kubelet has said that it is done: then it is the finalizer, whatever the statuses say",
        deleted(finalizers=("x/y",), deletion_grace_seconds=0.0),
        "finalizer",
        facts=HERE,
    ),
    Case(
        "the node is down",
        deleted(finalizers=("x/y",)),
        "node-not-ready",
        says=("gpu-01 is down (not ready)", "--force --grace-period=0", "leave its processes"),
        facts={"nodes": [node("gpu-01", ready=None)]},
    ),
    Case(
        "the node is gone",
        deleted(),
        "node-gone",
        says=("left the cluster", "If the machine gpu-01 is really off"),
        facts={"nodes": [node("gpu-02")]},
    ),
    Case("nodes that cannot be seen are not gone", deleted(), "unknown", facts={}),
    Case(
        "a process in D, as the view has it",
        deleted(),
        "stuck-process",
        says=(
            "process 4242 (python) on gpu-01 has been stuck in the kernel (state D) for 15 min",
            "cat /proc/4242/stack",
        ),
        facts=HERE | {"view": view(cards=[gpu_view("gpu-01", 0, GpuState.WEDGED, deleted(), evidence=(STUCK,))])},
    ),
    Case(
        "a process in Z, as the agent has it",
        deleted(),
        "stuck-process",
        says=("process 77 (train) on gpu-01 has not exited for 30 s (state Z)",),
        facts=HERE
        | {
            "agents": [
                agent(
                    "gpu-01",
                    gpu_processes=(
                        GpuProcessFact(
                            gpu_uuid="GPU-0",
                            pid=77,
                            kind="compute",
                            name="train",
                            state="Z",
                            state_since=NOW - 30,
                            pod_uid="uid-bert-0",
                        ),
                    ),
                )
            ]
        },
    ),
    Case(
        "another pod's process in D",
        deleted(),
        "unknown",
        facts=HERE
        | {
            "agents": [
                agent(
                    "gpu-01",
                    gpu_processes=(
                        GpuProcessFact(
                            gpu_uuid="GPU-0", pid=77, kind="compute", state="D", state_since=NOW - 900, pod_uid="uid-x"
                        ),
                    ),
                )
            ]
        },
    ),
    Case(
        "volumes",
        deleted(statuses=ENDED),
        "volume",
        says=("cannot unmount its volumes", "fuser -vm"),
        facts=HERE
        | {
            "events": [
                event("FailedUnmount", 'UnmountVolume.TearDown failed for volume "data": umount: /x: device is busy')
            ]
        },
    ),
    Case(
        "volumes, in the kubelet's words",
        deleted(statuses=ENDED),
        "volume",
        facts=HERE | {"events": [event("FailedKillPod", "error: some volumes have not been cleaned up")]},
    ),
    Case(
        "a mount of its node does not answer",
        deleted(),
        "hung-mount",
        says=("The mount /mnt/nas on gpu-01 has not responded for 20 min", "umount -f -l /mnt/nas"),
        facts=HERE
        | {"agents": [agent("gpu-01", mounts=(MountFact(path="/mnt/nas", state="hung", since=NOW - 1200),))]},
    ),
    Case(
        "a disk of its node does not answer",
        deleted(),
        "hung-mount",
        says=("/mnt/data",),
        facts=HERE
        | {
            "agents": [
                agent(
                    "gpu-01", disk=(DiskFact(mount="/mnt/data", device="nas:/d", fstype="nfs4", hung_since=NOW - 60),)
                )
            ]
        },
    ),
    Case(
        "a mount that answers is no reason",
        deleted(),
        "unknown",
        facts=HERE | {"agents": [agent("gpu-01", mounts=(MountFact(path="/mnt/nas", state="ok", since=NOW - 1200),))]},
    ),
    Case(
        "the runtime cannot stop it",
        deleted(),
        "kill-failed",
        says=("cannot stop its containers", "The node says: error killing pod"),
        facts=HERE
        | {"events": [event("FailedKillPod", "error killing pod: failed to KillContainer: context deadline exceeded")]},
    ),
    Case(
        "a process that is in D just now is not stuck",
        deleted(),
        "unknown",
        facts=HERE
        | {
            "agents": [
                agent(
                    "gpu-01",
                    gpu_processes=(
                        GpuProcessFact(
                            gpu_uuid="GPU-0",
                            pid=77,
                            kind="compute",
                            state="D",
                            state_since=NOW - 29,
                            pod_uid="uid-bert-0",
                        ),
                    ),
                )
            ]
        },
    ),
    Case(
        "a pod that has ended holds no GPU, whatever keeps the object",
        deleted(phase="Succeeded", statuses=ENDED, finalizers=("x/y",)),
        "finalizer",
        silent=("keeps 2 GPUs",),
        facts=HERE,
    ),
    Case(
        "preempted",
        deleted(-20, conditions=(ConditionFact(type="DisruptionTarget", status=True, reason="PreemptionByScheduler"),)),
        "grace",
        says=("A pod with a higher priority preempted it on gpu-01.",),
        facts=HERE,
    ),
    Case("no GPU is held by a pod without any", deleted(gpus=0), "unknown", silent=("keeps",), facts=HERE),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_terminating(case: Case) -> None:
    check(case, "terminating")


def test_since_when_it_is_being_deleted() -> None:
    explanation = check(Case("since", deleted(-20), "grace", facts=HERE), "terminating")
    assert explanation.seconds == 10
