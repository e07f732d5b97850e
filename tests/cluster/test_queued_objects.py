"""Pods of objects that Kueue queues: user, job and queue, in the order in which the informers list them.

The manifests are written by hand after those of Kueue 0.16, JobSet 0.11 and KubeRay 1.4, reduced to what is read: Kueue
of these versions puts the name of the queue on the Workload and on the queued object, not on pods.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitor.cluster.identity import identify
from monitor.cluster.pending import PendingChanges
from monitor.cluster.platforms import all_rules, required_fields
from monitor.facts.cluster import Identity
from monitor.facts.kube import OwnerFact, PodFact
from monitor.facts.queues import WorkloadFact
from monitor.kube.decode import stream
from monitor.kube.informers import queued_owners
from monitor.kube.resources import WORKLOADS
from monitor.kube.store import ObjectChange

RULES = all_rules()
JOB_OF_JOBSET = OwnerFact(uid="job", name="gemma-workers-0", namespace="team")


def listed(item: dict[str, Any]) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "9"}, "items": [item]}).encode()


def owned(kind: str, name: str, uid: str, version: str) -> list[dict[str, Any]]:
    return [{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}]


def workload(kind: str, name: str, version: str, queue: str | None = "train") -> WorkloadFact:
    owners = owned(kind, name, f"uid-{name}", version)
    meta = {"name": f"{kind.lower()}-{name}-1a2b3", "namespace": "team", "uid": "w", "ownerReferences": owners}
    (found,) = stream.WORKLOADS.page(listed({"metadata": meta, "spec": {"queueName": queue, "podSets": []}})).items
    return found


def pod(labels: dict[str, str], owners: list[dict[str, Any]]) -> PodFact:
    labels = {"userName": "li.lei", "kueue.x-k8s.io/podset": "workers"} | labels
    meta = {"name": "p", "namespace": "team", "uid": "p", "labels": labels, "ownerReferences": owners}
    (found,) = stream.pods(required_fields(RULES)).page(listed({"metadata": meta, "spec": {}, "status": {}})).items
    return found


JOBSET_POD = pod(
    {
        "jobset.sigs.k8s.io/jobset-name": "gemma",
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/job-index": "0",
        "batch.kubernetes.io/job-name": "gemma-workers-0",
    },
    owned("Job", "gemma-workers-0", "job", "batch/v1"),
)
RAYJOB_POD = pod(
    {
        "ray.io/originated-from-cr-name": "tune",
        "ray.io/originated-from-crd": "RayJob",
        "ray.io/cluster": "tune-x7k2p",
        "ray.io/node-type": "worker",
        "ray.io/group": "gpus",
    },
    owned("RayCluster", "tune-x7k2p", "cluster", "ray.io/v1"),
)
RAYCLUSTER_POD = pod(
    {"ray.io/cluster": "shared", "ray.io/node-type": "head"}, owned("RayCluster", "shared", "cluster", "ray.io/v1")
)
JOBSET = workload("JobSet", "gemma", "jobset.x-k8s.io/v1alpha2")
RAYJOB = workload("RayJob", "tune", "ray.io/v1")
QUEUED = [
    ("a JobSet", JOBSET_POD, JOBSET, "gemma", "workers", "JobSet"),
    ("a RayJob", RAYJOB_POD, RAYJOB, "tune", "worker", "RayJob"),
    ("a RayCluster", RAYCLUSTER_POD, workload("RayCluster", "shared", "ray.io/v1"), "shared", "head", "RayCluster"),
]


def identity(given: PodFact, *workloads: WorkloadFact) -> Identity:
    known = {"job": JOB_OF_JOBSET} | queued_owners(workloads)
    return identify(given, known.get, RULES, {})


@pytest.mark.parametrize(("name", "given", "queued", "job", "role", "kind"), QUEUED, ids=[row[0] for row in QUEUED])
def test_the_queue_is_that_of_the_workload(
    name: str, given: PodFact, queued: WorkloadFact, job: str, role: str, kind: str
) -> None:
    found = identity(given, queued)
    assert (found.user, found.job, found.role, found.workload_kind) == ("li.lei", job, role, kind), name
    assert found.queue == "train"
    assert identity(given).queue == "team", "until the Workload is known, that is all there is"


def test_a_workload_of_another_object_is_not_its_queue() -> None:
    others = (workload("JobSet", "other", "jobset.x-k8s.io/v1alpha2"), workload("RayJob", "gemma", "ray.io/v1"))
    assert identity(JOBSET_POD, *others).queue == "team"
    assert identity(JOBSET_POD, workload("JobSet", "gemma", "jobset.x-k8s.io/v1alpha2", queue=None)).queue == "team"


@pytest.mark.parametrize(
    ("name", "change", "expect"),
    [
        ("created", ObjectChange(None, JOBSET), {"team"}),
        ("admitted", ObjectChange(JOBSET, JOBSET), set()),
        ("moved to another queue", ObjectChange(JOBSET, workload("JobSet", "gemma", "v1", queue="other")), {"team"}),
        ("deleted", ObjectChange(JOBSET, None), set()),
    ],
)
def test_pods_are_identified_again_if_a_workload_is_new(
    name: str, change: ObjectChange[WorkloadFact], expect: set[str]
) -> None:
    pending = PendingChanges(lambda _name: None)
    pending.note(WORKLOADS.name, [change])
    assert pending.take_owners() == expect, name


@pytest.mark.parametrize("keep", [True, False])
def test_the_last_versions_of_pods_are_kept_on_request(keep: bool) -> None:
    last = PodFact(uid="p1", name="bert", namespace="team", phase="Failed")
    pending = PendingChanges(lambda _name: None, keep_gone=keep)
    pending.note("pods", [ObjectChange(last, None), ObjectChange(None, PodFact(uid="p2", name="b", namespace="team"))])
    assert pending.take_gone() == ({"p1": last} if keep else {})
    assert pending.take_gone() == {}
