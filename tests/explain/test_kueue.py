from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.kube import ConditionFact, OwnerRef, PodFact
from monitor.facts.queues import QueueFact, WorkloadFact
from tests.explain.builders import GPU, Case, check, names, node, pod

ROOM = [node("gpu-01"), node("gpu-02")]
FLAVORS = "couldn't assign flavors to pod set main: insufficient "
FLAVOR_SHORT = FLAVORS + "unused quota for nvidia.com/gpu in flavor a100, 2 more needed"
FLAVOR_NEVER = FLAVORS + "quota for nvidia.com/gpu in flavor a100, request > maximum capacity (24 > 16)"


def kueue_pod(**more: Any) -> PodFact:
    labels = {"kueue.x-k8s.io/queue-name": "nlp"}
    fields: dict[str, Any] = {"gpus": 2, "labels": labels, "scheduling_gates": ("kueue.x-k8s.io/admission",)}
    return pod(**(fields | more))


def local_queue(**more: Any) -> QueueFact:
    fields: dict[str, Any] = {
        "uid": "uid-lq",
        "kind": "LocalQueue",
        "name": "nlp",
        "namespace": "team-a",
        "parent": "gpus",
        "state": "open",
    }
    return QueueFact(**(fields | more))


def cluster_queue(**more: Any) -> QueueFact:
    fields: dict[str, Any] = {
        "uid": "uid-cq",
        "kind": "ClusterQueue",
        "name": "gpus",
        "state": "open",
        "guarantee": {GPU: 8.0},
    }
    return QueueFact(**(fields | {"capacity": {GPU: 8.0}, "allocated": {GPU: 8.0}} | more))


def workload(message: str | None = None, **more: Any) -> WorkloadFact:
    conditions = (ConditionFact(type="QuotaReserved", status=False, message=message),) if message else ()
    owner = OwnerRef(kind="Pod", name="bert-0", uid="uid-bert-0")
    fields: dict[str, Any] = {
        "uid": "uid-wl",
        "name": "pod-bert-0",
        "namespace": "team-a",
        "owner": owner,
        "queue": "nlp",
        "phase": "pending",
    }
    return WorkloadFact(**(fields | {"conditions": conditions, "requests": {GPU: 2.0}} | more))


def queued(kind: str, name: str, labels: dict[str, str]) -> tuple[PodFact, WorkloadFact]:
    """A pod that belongs to a Job of a queued object, and the Workload of that object."""
    owner = OwnerRef(kind="Job", name=f"{name}-node-0", uid="uid-job")
    member = kueue_pod(labels=labels, owner=owner)
    return member, workload(FLAVOR_SHORT, name="wl", owner=OwnerRef(kind=kind, name=name, uid=f"uid-{name}"))


NESTED = [
    queued("JobSet", "gemma", {"jobset.sigs.k8s.io/jobset-name": "gemma"}),
    queued("TrainJob", "gemma", {"jobset.sigs.k8s.io/jobset-name": "gemma"}),
    queued("RayJob", "tune", {"ray.io/originated-from-cr-name": "tune", "ray.io/cluster": "tune-x7k2p"}),
    queued("RayCluster", "shared", {"ray.io/cluster": "shared"}),
]


@pytest.mark.parametrize(("member", "admitted"), NESTED, ids=[found.owner.kind for _, found in NESTED if found.owner])
def test_the_pods_of_a_queued_object_are_found(member: PodFact, admitted: WorkloadFact) -> None:
    facts = {"workloads": [admitted], "queues": [local_queue(), cluster_queue()], "nodes": ROOM}
    explanation = check(Case("nested", member, "quota", says=("2 more needed",), facts=facts), "pending")
    assert explanation.pod.queue == "nlp"


CASES = [
    Case(
        "the quota is used up",
        kueue_pod(),
        "quota",
        says=(
            "waits in queue nlp: the quota of gpus for nvidia.com/gpu (flavor a100) is used up, 2 more needed",
            "gpus has 8 of nvidia.com/gpu, 8 are reserved; this job needs 2",
            "The scheduler says: couldn't assign flavors",
        ),
        facts={"nodes": ROOM, "queues": [local_queue(), cluster_queue()], "workloads": [workload(FLAVOR_SHORT)]},
    ),
    Case(
        "more than the quota ever allows",
        kueue_pod(),
        "quota",
        says=("more nvidia.com/gpu than its queue nlp can ever have in gpus (flavor a100)",),
        facts={"nodes": ROOM, "queues": [local_queue(), cluster_queue()], "workloads": [workload(FLAVOR_NEVER)]},
    ),
    Case(
        "words that are not known are quoted",
        kueue_pod(),
        "quota",
        says=(
            "no quota for it yet",
            "The scheduler says: borrowing limit for nvidia.com/gpu in flavor a100 exceeded",
        ),
        facts={
            "nodes": ROOM,
            "queues": [local_queue(), cluster_queue()],
            "workloads": [workload("borrowing limit for nvidia.com/gpu in flavor a100 exceeded")],
        },
    ),
    Case(
        "another resource than GPUs: its books are not quoted",
        kueue_pod(),
        "quota",
        silent=("are reserved",),
        facts={
            "nodes": ROOM,
            "queues": [local_queue(), cluster_queue()],
            "workloads": [workload("insufficient unused quota for cpu in flavor x86, 3 more needed")],
        },
    ),
    Case(
        "the local queue is stopped",
        kueue_pod(),
        "queue-closed",
        says=("queue nlp accepts no new jobs: stopPolicy Hold", "kubectl describe LocalQueue nlp -n team-a"),
        facts={
            "nodes": ROOM,
            "queues": [local_queue(state="closed", message="stopPolicy Hold"), cluster_queue()],
            "workloads": [workload()],
        },
    ),
    Case(
        "the cluster queue behind it is the reason for both",
        kueue_pod(),
        "queue-closed",
        says=("queue gpus accepts no new jobs: Can't admit new workloads: FlavorNotFound",),
        facts={
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
        says=("requests queue nlpp, but team-a has no LocalQueue of that name",),
        facts={"nodes": ROOM, "queues": [local_queue(), cluster_queue()]},
    ),
    Case(
        "queues that cannot be seen are not called missing",
        kueue_pod(),
        "unschedulable-other",
        says=("Kueue has not registered it yet (queue nlp)",),
        facts={"nodes": ROOM},
    ),
    Case(
        "switched off",
        kueue_pod(),
        "unschedulable-other",
        says=("Its workload pod-bert-0 was switched off", '-p \'{"spec":{"active":true}}\''),
        facts={"nodes": ROOM, "queues": [local_queue()], "workloads": [workload(active=False)]},
    ),
    Case(
        "preempted",
        kueue_pod(),
        "priority",
        says=("A job with a higher priority preempted it: Preempted to accommodate a workload",),
        facts={
            "nodes": ROOM,
            "queues": [local_queue()],
            "workloads": [
                workload(
                    phase="evicted",
                    conditions=(
                        ConditionFact(
                            type="Evicted",
                            status=True,
                            reason="Preempted",
                            message="Preempted to accommodate a workload",
                        ),
                    ),
                )
            ],
        },
    ),
    Case(
        "checks are not done",
        kueue_pod(),
        "unschedulable-other",
        says=("admission checks of workload pod-bert-0 are still pending",),
        facts={"nodes": ROOM, "queues": [local_queue()], "workloads": [workload(phase="reserved")]},
    ),
    Case(
        "let through: then it is about nodes",
        kueue_pod(scheduling_gates=(), age=5),
        "unschedulable-other",
        says=("any moment",),
        facts={"nodes": ROOM, "queues": [local_queue()], "workloads": [workload(phase="admitted")]},
    ),
    Case(
        "a group that is not complete",
        kueue_pod(labels={"kueue.x-k8s.io/queue-name": "nlp", "kueue.x-k8s.io/pod-group-name": "bert"}),
        "gang-incomplete",
        says=("group bert is incomplete: 1 pod exists",),
        facts={"nodes": ROOM, "queues": [local_queue()]},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_kueue(case: Case) -> None:
    check(case)
