"""JSON to facts: queues, PodGroups and Workloads of Volcano and Kueue."""

from __future__ import annotations

import json

import pytest

from monitor.facts.queues import QueueFact
from monitor.kube.decode import stream


def listed(*items: object) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "9"}, "items": items}, ensure_ascii=False).encode()


META = {"name": "q", "uid": "u", "resourceVersion": "3"}


@pytest.mark.parametrize(
    ("name", "kind", "item", "expect"),
    [
        (
            "Volcano 1.8",
            stream.VOLCANO_QUEUES,
            {
                "metadata": META,
                "spec": {
                    "weight": 4,
                    "reclaimable": True,
                    "capability": {"nvidia.com/gpu": "32"},
                    "guarantee": {"resource": {"nvidia.com/gpu": "8"}},
                    "deserved": {"nvidia.com/gpu": "16"},
                },
                "status": {"state": "Closed", "pending": 3, "running": 2, "allocated": {"nvidia.com/gpu": "31"}},
            },
            QueueFact(
                uid="u", kind="VolcanoQueue", name="q", resource_version="3", state="closed", weight=4.0,
                capacity={"nvidia.com/gpu": 32.0}, guarantee={"nvidia.com/gpu": 8.0}, deserved={"nvidia.com/gpu": 16.0},
                allocated={"nvidia.com/gpu": 31.0}, pending=3, running=2,
            ),
        ),
        ("Volcano, fresh", stream.VOLCANO_QUEUES, {"metadata": META, "spec": {"weight": 1}, "status": {"state": ""}},
         QueueFact(uid="u", kind="VolcanoQueue", name="q", resource_version="3", weight=1.0)),
        (
            "Kueue v1beta1, alone",
            stream.KUEUE_QUEUES,
            {
                "metadata": META,
                "spec": {
                    "resourceGroups": [
                        {"flavors": [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "16"}]},
                                     {"name": "v100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}]}
                    ],
                },
                "status": {
                    "conditions": [{"type": "Active", "status": "True"}], "pendingWorkloads": 2, "admittedWorkloads": 1,
                    "flavorsReservation": [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "total": "5"}]}],
                },
            },
            QueueFact(
                uid="u", kind="ClusterQueue", name="q", resource_version="3", state="open",
                capacity={"nvidia.com/gpu": 24.0}, guarantee={"nvidia.com/gpu": 24.0},
                allocated={"nvidia.com/gpu": 5.0}, pending=2, running=1,
            ),
        ),
        (
            "Kueue v1beta2, in a cohort: cpu may be borrowed up to a limit, cards without one",
            stream.KUEUE_QUEUES,
            {
                "metadata": META,
                "spec": {
                    "cohortName": "all",
                    "stopPolicy": "None",
                    "resourceGroups": [{"flavors": [{"resources": [
                        {"name": "cpu", "nominalQuota": "10", "borrowingLimit": "5"},
                        {"name": "nvidia.com/gpu", "nominalQuota": "8"}]}]}],
                },
                "status": {"conditions": [
                    {"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": "no flavor a100"}]},
            },
            QueueFact(
                uid="u", kind="ClusterQueue", name="q", resource_version="3", state="closed", message="no flavor a100",
                parent="all", capacity={"cpu": 15.0}, guarantee={"cpu": 10.0, "nvidia.com/gpu": 8.0},
            ),
        ),
        ("Kueue LocalQueue on hold", stream.KUEUE_QUEUES,
         {"metadata": {**META, "namespace": "lab"}, "spec": {"clusterQueue": "main", "stopPolicy": "Hold"}},
         QueueFact(uid="u", kind="LocalQueue", name="q", namespace="lab", resource_version="3", state="closed",
                   message="stopPolicy Hold", parent="main")),
    ],
)  # fmt: skip
def test_queues(name: str, kind: stream.ObjectKind[QueueFact], item: object, expect: QueueFact) -> None:
    page = kind.page(listed(item))
    assert (page.problem, page.items) == (None, (expect,)), name


def test_a_pod_group_says_why_it_waits() -> None:
    item = {
        "metadata": {**META, "namespace": "lab"},
        "spec": {"minMember": 4, "queue": "vision", "minResources": {"nvidia.com/gpu": "32"}},
        "status": {
            "phase": "Inqueue",
            "running": 1,
            "conditions": [
                {
                    "type": "Unschedulable",
                    "status": "True",
                    "reason": "NotEnoughResources",
                    "message": "3/4 tasks in gang unschedulable",
                    "transitionID": "x",
                }
            ],
        },
    }
    (group,) = stream.POD_GROUPS.page(listed(item)).items
    assert (group.queue, group.phase, group.min_member, group.running) == ("vision", "Inqueue", 4, 1)
    assert group.min_resources == {"nvidia.com/gpu": 32.0}
    assert group.conditions[0].message == "3/4 tasks in gang unschedulable"


@pytest.mark.parametrize(
    ("true", "phase"),
    [
        ((), "pending"),
        (("QuotaReserved",), "reserved"),
        (("QuotaReserved", "Admitted"), "admitted"),
        (("Evicted",), "evicted"),
        (("QuotaReserved", "Admitted", "Finished"), "finished"),
    ],
)
def test_workloads(true: tuple[str, ...], phase: str) -> None:
    states = [{"type": name, "status": "True"} for name in true] + [{"type": "PodsReady", "status": "False"}]
    pod_set = {
        "count": 4,
        "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}},
    }
    item = {
        "metadata": {**META, "namespace": "lab"},
        "spec": {"queueName": "team", "priority": 5, "podSets": [pod_set, {"name": "x", "count": 0}]},
        "status": {"conditions": states, "admission": {"clusterQueue": "main"} if "QuotaReserved" in true else None},
    }
    (work,) = stream.WORKLOADS.page(listed(item)).items
    assert (work.phase, work.queue, work.min_member) == (phase, "team", 4)
    assert work.requests == {"nvidia.com/gpu": 32.0}
    assert work.cluster_queue == ("main" if "QuotaReserved" in true else None)
