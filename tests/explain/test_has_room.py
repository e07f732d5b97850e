# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

import pytest

from monitor.facts.kube import PodFact, PodVolumeFact
from tests.explain.builders import Case, check, event, names, node, pod, unschedulable

ROOM = {"nodes": [node("gpu-01")]}
TAINTED_1_20 = (
    "0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) had taint {k: v}, that the pod didn't tolerate."
)
CLAIM = PodVolumeFact(name="data", kind="persistentVolumeClaim", claim="imagenet")


def refused(message: str) -> PodFact:
    return pod(gpus=1, conditions=unschedulable(message), volumes=(CLAIM,))


CASES = [
    Case(
        "just submitted", pod(gpus=1, age=10), "unschedulable-other", says=("any moment: gpu-01 has room",), facts=ROOM
    ),
    Case(
        "30 s are granted",
        pod(gpus=1, age=3000, conditions=unschedulable(TAINTED_1_20, ago=30)),
        "unschedulable-other",
        says=("any moment", "The scheduler says: 0/5 nodes"),
        facts=ROOM,
    ),
    Case(
        "31 s are not: it is the scheduler who decides",
        pod(gpus=1, age=3000, conditions=unschedulable(TAINTED_1_20, ago=31)),
        "not-enough-gpus",
        says=("All nvidia.com/gpu that it could use is taken", "The scheduler says: 0/5 nodes are available"),
        facts=ROOM,
    ),
    Case(
        "no scheduler has handled",
        pod(gpus=1, age=300, scheduler="volcan0"),
        "unschedulable-other",
        says=("no scheduler has handled this pod. It requests the scheduler volcan0", "schedulerName"),
        facts=ROOM,
    ),
    Case(
        "the event speaks where there is no condition",
        pod(gpus=1, age=300),
        "unschedulable-other",
        says=("anti-affinity",),
        facts=ROOM
        | {
            "events": [
                event(
                    "FailedScheduling",
                    "0/1 nodes are available: 1 node(s) didn't match pod affinity/anti-affinity.",
                    ago=200,
                )
            ]
        },
    ),
    Case(
        "ports",
        refused("0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports."),
        "unschedulable-other",
        says=("a host port",),
        facts=ROOM,
    ),
    Case(
        "spread",
        refused("0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints."),
        "unschedulable-other",
        says=("topology spread constraints",),
        facts=ROOM,
    ),
    Case(
        "a taint that came a moment ago and is not in our facts",
        refused(
            "0/1 nodes are available: 1 node(s) had untolerated taint {sick: }. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        ),
        "taint",
        says=("The scheduler says: 0/1 nodes are available: 1 node(s) had untolerated taint",),
        facts=ROOM,
    ),
    Case(
        "a gang that only the scheduler knows of",
        refused("pod group is not ready, 2 minAvailable, 1 Pending; Pending: 1 Undetermined"),
        "gang-incomplete",
        says=("The scheduler says: pod group is not ready",),
        facts=ROOM,
    ),
    Case(
        "a claim that is missing, 1.20",
        refused('persistentvolumeclaim "imagenet" not found'),
        "volume",
        says=("The PVC imagenet that it uses does not exist in team-a.", "kubectl get pvc -n team-a"),
        facts=ROOM,
    ),
    Case(
        "a claim that is missing, 1.24 and later",
        refused(
            '0/3 nodes are available: persistentvolumeclaim "imagenet" not found. preemption: 0/3 nodes are available: 3 Preemption is not helpful.'
        ),
        "volume",
        says=("The PVC imagenet that it uses does not exist in team-a.",),
        facts=ROOM,
    ),
    Case(
        "a missing claim is the reason even when GPUs are short as well",
        pod(gpus=64, conditions=unschedulable('persistentvolumeclaim "imagenet" not found')),
        "volume",
        facts=ROOM,
    ),
    Case(
        "a claim without a volume",
        refused("0/4 nodes are available: 4 pod has unbound immediate PersistentVolumeClaims."),
        "volume",
        says=("The PVC imagenet that it uses is not bound to a volume yet.", "kubectl describe pvc imagenet -n team-a"),
        facts=ROOM,
    ),
    Case(
        "a volume that is on other nodes",
        refused("0/4 nodes are available: 3 Insufficient nvidia.com/gpu, 1 node(s) had volume node affinity conflict."),
        "volume",
        says=("is not available on the nodes",),
        facts=ROOM,
    ),
    Case(
        "at once, because a volume does not move",
        pod(
            gpus=1,
            age=3000,
            conditions=unschedulable(
                "0/4 nodes are available: 3 Insufficient nvidia.com/gpu, 1 node(s) didn't match PersistentVolume's node affinity.",
                ago=1,
            ),
        ),
        "volume",
        says=("is not available on the nodes",),
        facts=ROOM,
    ),
    Case(
        "no volume to be had",
        refused("0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."),
        "volume",
        says=("is not available on the nodes that have room",),
        facts=ROOM,
    ),
    Case(
        "a volume conflict on full nodes is not why it waits",
        pod(gpus=9, conditions=unschedulable("0/1 nodes are available: 1 node(s) had volume node affinity conflict.")),
        "no-single-node-fits",
        facts=ROOM,
    ),
    Case(
        "it waits for pods of lower priority to leave",
        pod(gpus=8, nominated_node="gpu-01", priority=1000),
        "priority",
        says=("gets its place on gpu-01 once the lower-priority pods there have ended",),
        facts=ROOM | {"pods": [pod("low", gpus=8, node="gpu-01", phase="Running", priority=0)]},
    ),
    Case(
        "the room is kept for somebody else",
        pod(gpus=8, priority=0),
        "priority",
        says=("is reserved for team-a/boss of team-a", "priority 1000, this pod 0"),
        facts=ROOM | {"pods": [pod("boss", gpus=8, nominated_node="gpu-01", priority=1000)]},
    ),
    Case(
        "a pod of lower priority is not made room for",
        pod(gpus=8, priority=10, age=5),
        "unschedulable-other",
        says=("any moment",),
        facts=ROOM | {"pods": [pod("minion", gpus=8, nominated_node="gpu-01", priority=1)]},
    ),
    Case(
        "enough is left beside what is kept",
        pod(gpus=4, priority=0, age=5),
        "unschedulable-other",
        says=("any moment",),
        facts=ROOM | {"pods": [pod("boss", gpus=4, nominated_node="gpu-01", priority=1000)]},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_fitting(case: Case) -> None:
    check(case)
