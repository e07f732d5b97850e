from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.cluster import Identity
from monitor.facts.kube import ConditionFact, OwnerRef, PodFact, PodGroupFact, QueueFact, WorkloadFact
from tests.explain.builders import GPU, NOW, Case, check, event, holding, names, node, pod

ROOM = [node("gpu-01"), node("gpu-02")]
JOB = OwnerRef(kind="Job", name="bert", uid="uid-job")
FLAVOR_SHORT = "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100, 2 more needed"
FLAVOR_NEVER = "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, request > maximum capacity (24 > 16)"


def volcano_pod(name: str = "bert-0", **more: Any) -> PodFact:
    return pod(
        name, **({"gpus": 2, "scheduler": "volcano", "owner": JOB, "labels": {"volcano.sh/job-name": "bert"}} | more)
    )


def queue(**more: Any) -> QueueFact:
    fields = {"uid": "uid-q", "kind": "VolcanoQueue", "name": "nlp", "state": "open"}
    return QueueFact(**(fields | more))


def group(**more: Any) -> PodGroupFact:
    fields = {
        "uid": "uid-pg",
        "name": "bert-uid-job",
        "namespace": "team-a",
        "owner": JOB,
        "queue": "nlp",
        "min_member": 1,
    }
    return PodGroupFact(**(fields | more))


def kueue_pod(**more: Any) -> PodFact:
    labels = {"kueue.x-k8s.io/queue-name": "nlp"}
    return pod(**({"gpus": 2, "labels": labels, "scheduling_gates": ("kueue.x-k8s.io/admission",)} | more))


def local_queue(**more: Any) -> QueueFact:
    fields = {
        "uid": "uid-lq",
        "kind": "LocalQueue",
        "name": "nlp",
        "namespace": "team-a",
        "parent": "gpus",
        "state": "open",
    }
    return QueueFact(**(fields | more))


def cluster_queue(**more: Any) -> QueueFact:
    fields = {"uid": "uid-cq", "kind": "ClusterQueue", "name": "gpus", "state": "open", "guarantee": {GPU: 8.0}}
    return QueueFact(**(fields | {"capacity": {GPU: 8.0}, "allocated": {GPU: 8.0}} | more))


def workload(message: str | None = None, **more: Any) -> WorkloadFact:
    conditions = (ConditionFact(type="QuotaReserved", status=False, message=message),) if message else ()
    owner = OwnerRef(kind="Pod", name="bert-0", uid="uid-bert-0")
    fields = {
        "uid": "uid-wl",
        "name": "pod-bert-0",
        "namespace": "team-a",
        "owner": owner,
        "queue": "nlp",
        "phase": "pending",
    }
    return WorkloadFact(**(fields | {"conditions": conditions, "requests": {GPU: 2.0}} | more))


VOLCANO = [
    Case(
        "the queue is closed",
        volcano_pod(),
        "queue-closed",
        says=("Its queue nlp is closed: no new job starts there.", "vcctl queue operate -n nlp -a open"),
        world={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(state="closed")]},
    ),
    Case(
        "the queue is closing",
        volcano_pod(),
        "queue-closed",
        world={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(state="closing")]},
    ),
    Case(
        "another queue is closed",
        volcano_pod(age=5),
        "unschedulable-other",
        says=("any moment",),
        world={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(), queue(uid="x", name="cv", state="closed")]},
    ),
    Case(
        "a Kueue queue of the same name is another queue",
        volcano_pod(age=5),
        "unschedulable-other",
        world={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(), cluster_queue(name="nlp", state="closed")]},
    ),
    Case(
        "the queue is full",
        volcano_pod(),
        "quota",
        says=("queue nlp is full: the limit is 8 of nvidia.com/gpu, 7 are in use, and it needs 2 more", "held by: alice (4), bob (3)"),
        world={
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
        world={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(capacity={GPU: 8.0}, allocated={GPU: 6.0})]},
    ),
    Case(
        "the whole group counts, not one pod",
        volcano_pod(),
        "quota",
        says=("it needs 4 more",),
        world={
            "nodes": ROOM,
            "pods": [volcano_pod("bert-1")],
            "pod_groups": [group(min_member=2, min_resources={GPU: 4.0})],
            "queues": [queue(capacity={GPU: 8.0}, allocated={GPU: 6.0})],
        },
    ),
    Case(
        "more than the queue may ever have",
        volcano_pod(gpus=16),
        "quota",
        says=("asks for 16 of nvidia.com/gpu; its queue nlp may never have more than 8",),
        world={"nodes": ROOM, "pod_groups": [group()], "queues": [queue(capacity={GPU: 8.0})]},
    ),
    Case(
        "pods of the group are missing, and why",
        volcano_pod(),
        "gang-incomplete",
        says=(
            "group bert-uid-job starts all together or not at all: 4 pods have to exist, 1 exists, 3 are missing",
            "quota gpu-quota is used up",
            "The scheduler says: 4/1 tasks in gang unschedulable",
        ),
        world={
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
                event("Unschedulable", "4/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 4 minAvailable", kind="PodGroup", name="bert-uid-job", involved_uid="uid-pg"),
            ],
        },
    ),
    Case(
        "a failed pod is no member",
        volcano_pod(),
        "gang-incomplete",
        says=("2 pods have to exist, 1 exists",),
        world={"nodes": ROOM, "pod_groups": [group(min_member=2)], "pods": [volcano_pod("bert-1", phase="Failed", node="gpu-01")]},
    ),
    Case(
        "each fits, all together do not",
        volcano_pod(gpus=8),
        "gang-incomplete",
        says=("of 3 waiting pods (24 GPUs in all) only 2 would fit at the same time, 3 have to", "2 would fit now"),
        world={
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
        world={"nodes": ROOM, "pod_groups": [group(min_member=2)], "pods": [volcano_pod("bert-1", gpus=8)]},
    ),
    Case(
        "what runs of the group counts as placed",
        volcano_pod(gpus=8, age=5),
        "unschedulable-other",
        says=("any moment",),
        world={
            "nodes": ROOM,
            "pod_groups": [group(min_member=2, running=1)],
            "pods": [volcano_pod("bert-1", gpus=8, node="gpu-01", phase="Running")],
        },
    ),
    Case(
        "the group is found by its annotation",
        pod(gpus=2, scheduler="volcano", annotations={"scheduling.k8s.io/group-name": "pg-1"}),
        "gang-incomplete",
        world={"nodes": ROOM, "pod_groups": [group(name="pg-1", owner=None, min_member=2)]},
    ),
    Case(
        "a group in another namespace is another group",
        volcano_pod(age=5),
        "unschedulable-other",
        world={"nodes": ROOM, "pod_groups": [group(namespace="team-b", min_member=4)]},
    ),
]  # fmt: skip

KUEUE = [
    Case(
        "the quota is used up",
        kueue_pod(),
        "quota",
        says=(
            "waits in queue nlp: the quota of gpus for nvidia.com/gpu (flavor a100) is used up, 2 more needed",
            "gpus has 8 of nvidia.com/gpu, 8 are reserved; this job needs 2",
            "The scheduler says: couldn't assign flavors",
        ),
        world={"nodes": ROOM, "queues": [local_queue(), cluster_queue()], "workloads": [workload(FLAVOR_SHORT)]},
    ),
    Case(
        "more than the quota ever allows",
        kueue_pod(),
        "quota",
        says=("more nvidia.com/gpu than its queue nlp may ever have in gpus (flavor a100)",),
        world={"nodes": ROOM, "queues": [local_queue(), cluster_queue()], "workloads": [workload(FLAVOR_NEVER)]},
    ),
    Case(
        "words that are not known are quoted",
        kueue_pod(),
        "quota",
        says=("no quota for it in gpus yet", "The scheduler says: borrowing limit for nvidia.com/gpu in flavor a100 exceeded"),
        world={"nodes": ROOM, "queues": [local_queue(), cluster_queue()], "workloads": [workload("borrowing limit for nvidia.com/gpu in flavor a100 exceeded")]},
    ),
    Case(
        "another resource than GPUs: its books are not quoted",
        kueue_pod(),
        "quota",
        silent=("are reserved",),
        world={"nodes": ROOM, "queues": [local_queue(), cluster_queue()], "workloads": [workload("insufficient unused quota for cpu in flavor x86, 3 more needed")]},
    ),
    Case(
        "the local queue is stopped",
        kueue_pod(),
        "queue-closed",
        says=("queue nlp takes no new jobs: stopPolicy Hold", "kubectl describe LocalQueue nlp"),
        world={"nodes": ROOM, "queues": [local_queue(state="closed", message="stopPolicy Hold"), cluster_queue()], "workloads": [workload()]},
    ),
    Case(
        "the cluster queue behind it is the reason for both",
        kueue_pod(),
        "queue-closed",
        says=("queue gpus takes no new jobs: Can't admit new workloads: FlavorNotFound",),
        world={
            "nodes": ROOM,
            "queues": [
                local_queue(state="closed", message="Can't submit new workloads to clusterQueue"),
                cluster_queue(state="closed", message="Can't admit new workloads: FlavorNotFound"),
            ],
            "workloads": [workload()],
        },
    ),
    Case(
        "a queue that does not exist",
        kueue_pod(labels={"kueue.x-k8s.io/queue-name": "nlpp"}),
        "queue-closed",
        says=("asks for the queue nlpp, and there is no LocalQueue of that name in team-a",),
        world={"nodes": ROOM, "queues": [local_queue(), cluster_queue()]},
    ),
    Case(
        "queues that cannot be seen are not called missing",
        kueue_pod(),
        "unschedulable-other",
        says=("Kueue has not registered it yet (queue nlp)",),
        world={"nodes": ROOM},
    ),
    Case(
        "switched off",
        kueue_pod(),
        "unschedulable-other",
        says=("switched its workload pod-bert-0 off", '-p \'{"spec":{"active":true}}\''),
        world={"nodes": ROOM, "queues": [local_queue()], "workloads": [workload(active=False)]},
    ),
    Case(
        "preempted",
        kueue_pod(),
        "priority",
        says=("A job with a higher priority has taken its place: Preempted to accommodate a workload",),
        world={
            "nodes": ROOM,
            "queues": [local_queue()],
            "workloads": [workload(phase="evicted", conditions=(ConditionFact(type="Evicted", status=True, reason="Preempted", message="Preempted to accommodate a workload"),))],
        },
    ),
    Case(
        "checks are not done",
        kueue_pod(),
        "unschedulable-other",
        says=("admission checks of the workload pod-bert-0 are not done yet",),
        world={"nodes": ROOM, "queues": [local_queue()], "workloads": [workload(phase="reserved")]},
    ),
    Case(
        "let through: then it is about nodes",
        kueue_pod(scheduling_gates=(), age=5),
        "unschedulable-other",
        says=("any moment",),
        world={"nodes": ROOM, "queues": [local_queue()], "workloads": [workload(phase="admitted")]},
    ),
    Case(
        "a group that is not complete",
        kueue_pod(labels={"kueue.x-k8s.io/queue-name": "nlp", "kueue.x-k8s.io/pod-group-name": "bert"}),
        "gang-incomplete",
        says=("group bert is not complete: 1 pod has come",),
        world={"nodes": ROOM, "queues": [local_queue()]},
    ),
    Case(
        "some other gate",
        pod(gpus=1, scheduling_gates=("example.com/hold",)),
        "unschedulable-other",
        says=("scheduling gate example.com/hold",),
        world={"nodes": ROOM},
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", VOLCANO + KUEUE, ids=names(VOLCANO + KUEUE))
def test_queue(case: Case) -> None:
    check(case)


def test_times_are_not_looked_at() -> None:
    """Queues are about what is, not about when: the same pod a day later gets the same answer."""
    older = Case("older", volcano_pod(created_at=NOW - 90_000), "queue-closed", world=VOLCANO[0].world)
    assert check(older).headline == check(VOLCANO[0]).headline
