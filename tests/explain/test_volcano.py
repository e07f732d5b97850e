# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.cluster import Identity
from monitor.facts.kube import OwnerRef, PodFact
from monitor.facts.queues import PodGroupFact, QueueFact
from tests.explain.builders import GPU, Case, check, event, holding, names, node, pod

ROOM = [node("gpu-01"), node("gpu-02")]
JOB = OwnerRef(kind="Job", name="bert", uid="uid-job")


def volcano_pod(name: str = "bert-0", **more: Any) -> PodFact:
    labels = {"volcano.sh/job-name": "bert"}
    fields: dict[str, Any] = {"gpus": 2, "scheduler": "volcano", "owner": JOB, "labels": labels}
    return pod(name, **(fields | more))


def queue(**more: Any) -> QueueFact:
    fields: dict[str, Any] = {"uid": "uid-q", "kind": "VolcanoQueue", "name": "nlp", "state": "open"}
    return QueueFact(**(fields | more))


def group(**more: Any) -> PodGroupFact:
    fields: dict[str, Any] = {
        "uid": "uid-pg",
        "name": "bert-uid-job",
        "namespace": "team-a",
        "owner": JOB,
        "queue": "nlp",
        "min_member": 1,
    }
    return PodGroupFact(**(fields | more))


CASES = [
    Case(
        "the queue is closed",
        volcano_pod(),
        "queue-closed",
        says=("Its queue nlp is closed: no new job starts there.", "vcctl queue operate -n nlp -a open"),
        facts={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(state="closed")]},
    ),
    Case(
        "the queue is closing",
        volcano_pod(),
        "queue-closed",
        facts={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(state="closing")]},
    ),
    Case(
        "another queue is closed",
        volcano_pod(age=5),
        "unschedulable-other",
        says=("any moment",),
        facts={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(), queue(uid="x", name="cv", state="closed")]},
    ),
    Case(
        "a Kueue queue of the same name is another queue",
        volcano_pod(age=5),
        "unschedulable-other",
        facts={
            "nodes": ROOM,
            "pod_groups": [group()],
            "queues": [queue(), queue(uid="k", kind="ClusterQueue", state="closed")],
        },
    ),
    Case(
        "the queue is full",
        volcano_pod(),
        "quota",
        says=(
            "queue nlp is full: the limit is 8 of nvidia.com/gpu, 7 are in use, and it needs 2 more",
            "nlp: alice (4), bob (3)",
        ),
        facts={
            "nodes": ROOM,
            "pod_groups": [group()],
            "queues": [queue(capacity={GPU: 8.0}, allocated={GPU: 7.0})],
            "pods": [holding("a", "gpu-01", 4), holding("b", "gpu-01", 3), holding("c", "gpu-02", 8)],
            "identities": {
                "uid-a": Identity(user="alice", queue="nlp"),
                "uid-b": Identity(user="bob", queue="nlp"),
                "uid-c": Identity(user="carol", queue="cv"),
            },
        },
    ),
    Case(
        "just room enough in the queue",
        volcano_pod(age=5),
        "unschedulable-other",
        says=("any moment",),
        facts={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(capacity={GPU: 8.0}, allocated={GPU: 6.0})]},
    ),
    Case(
        "the whole group counts, not one pod",
        volcano_pod(),
        "quota",
        says=("it needs 4 more",),
        facts={
            "nodes": ROOM,
            "pods": [volcano_pod("bert-1")],
            "pod_groups": [group(min_member=2, min_resources={GPU: 4.0})],
            "queues": [queue(capacity={GPU: 8.0}, allocated={GPU: 6.0})],
        },
    ),
    Case(
        "the group counts what its pods request, where Volcano leaves that out",
        volcano_pod(),
        "quota",
        says=("the limit is 8 of nvidia.com/gpu, 6 are in use, and it needs 4 more",),
        facts={
            "nodes": ROOM,
            "pods": [volcano_pod("bert-1"), volcano_pod("bert-2", gpus=8), volcano_pod("bert-3", phase="Failed")],
            "pod_groups": [group(min_member=2, min_resources={"pods": 2.0, "count/pods": 2.0})],
            "queues": [queue(capacity={GPU: 8.0}, allocated={GPU: 6.0})],
        },
    ),
    Case(
        "more than the queue may ever have",
        volcano_pod(gpus=16),
        "quota",
        says=("requests 16 of nvidia.com/gpu, but its queue nlp can never have more than 8",),
        facts={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(capacity={GPU: 8.0})]},
    ),
    Case(
        "pods of the group are missing, and why",
        volcano_pod(),
        "gang-incomplete",
        says=(
            "group bert-uid-job starts all together or not at all: 4 pods are required, 1 exists, 3 are missing",
            "quota gpu-quota is used up",
            "The scheduler says: 4/1 tasks in gang unschedulable",
        ),
        facts={
            "nodes": ROOM,
            "pod_groups": [group(min_member=4)],
            "queues": [queue()],
            "events": [
                event(
                    "FailedCreate",
                    'pods "bert-1" is forbidden: exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=2, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8',
                    kind="Job",
                    name="bert",
                    involved_uid="uid-job",
                ),
                event(
                    "Unschedulable",
                    "4/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 4 minAvailable",
                    kind="PodGroup",
                    name="bert-uid-job",
                    involved_uid="uid-pg",
                ),
            ],
        },
    ),
    Case(
        "an event from before the pods of the group were created",
        volcano_pod(gpus=16),
        "no-single-node-fits",
        facts={
            "nodes": ROOM,
            "pods": [volcano_pod("bert-1", gpus=16)],
            "pod_groups": [group(min_member=2)],
            "events": [
                event(
                    "Unschedulable",
                    "0/0 tasks in gang unschedulable: pod group is not ready, 2 minAvailable",
                    kind="PodGroup",
                    name="bert-uid-job",
                    involved_uid="uid-pg",
                ),
            ],
        },
    ),
    Case(
        "a failed pod is no member",
        volcano_pod(),
        "gang-incomplete",
        says=("2 pods are required, 1 exists",),
        facts={
            "nodes": ROOM,
            "pod_groups": [group(min_member=2)],
            "pods": [volcano_pod("bert-1", phase="Failed", node="gpu-01")],
        },
    ),
    Case(
        "each fits, all together do not",
        volcano_pod(gpus=8),
        "gang-incomplete",
        says=("of 3 waiting pods (24 GPUs in total) only 2 would fit at once, 3 are required", "2 would fit now"),
        facts={
            "nodes": ROOM,
            "pod_groups": [group(min_member=3)],
            "pods": [volcano_pod("bert-1", gpus=8), volcano_pod("bert-2", gpus=8)],
        },
    ),
    Case(
        "all together just fit",
        volcano_pod(gpus=8, age=5),
        "unschedulable-other",
        says=("any moment",),
        facts={"nodes": ROOM, "pod_groups": [group(min_member=2)], "pods": [volcano_pod("bert-1", gpus=8)]},
    ),
    Case(
        "what runs of the group counts as placed",
        volcano_pod(gpus=8, age=5),
        "unschedulable-other",
        says=("any moment",),
        facts={
            "nodes": ROOM,
            "pod_groups": [group(min_member=2, running=1)],
            "pods": [volcano_pod("bert-1", gpus=8, node="gpu-01", phase="Running")],
        },
    ),
    Case(
        "the group is found by its annotation",
        pod(gpus=2, scheduler="volcano", annotations={"scheduling.k8s.io/group-name": "pg-1"}),
        "gang-incomplete",
        facts={"nodes": ROOM, "pod_groups": [group(name="pg-1", owner=None, min_member=2)]},
    ),
    Case(
        "a group in another namespace is another group",
        volcano_pod(age=5),
        "unschedulable-other",
        facts={"nodes": ROOM, "pod_groups": [group(namespace="team-b", min_member=4)]},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_volcano(case: Case) -> None:
    check(case)
