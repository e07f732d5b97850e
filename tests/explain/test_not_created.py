# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.not_created import explain_name
from monitor.explain.quota_message import parse_denial
from monitor.facts.cluster import Identity
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import ConditionFact, EventFact, OwnerRef
from monitor.facts.queues import PodGroupFact, QueueFact, QuotaFact, WorkloadFact
from tests.explain.builders import (
    GPU,
    NOW,
    assert_renders,
    english,
    event,
    holding,
    looping,
    node,
    pod,
    running_container,
)

FORBIDDEN = 'Error creating: pods "bert-abcde" is forbidden: '
QUOTA = (
    FORBIDDEN
    + "exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=12, limited: requests.nvidia.com/gpu=16"
)


def refused(message: str, **more: Any) -> EventFact:
    fields: dict[str, Any] = {"kind": "Job", "name": "bert", "involved_uid": "uid-job", "count": 14}
    return event("FailedCreate", message, **(fields | more))


MESSAGES: list[tuple[str, str, str, tuple[str, ...]]] = [
    (
        "quota",
        QUOTA,
        "quota",
        ("quota gpu-quota is used up: requests.nvidia.com/gpu is limited to 16, 12 are in use, the job needs 8 more",),
    ),
    (
        "quota of several resources: GPUs are named",
        FORBIDDEN
        + "exceeded quota: q, requested: limits.cpu=4,requests.nvidia.com/gpu=2, used: limits.cpu=1,requests.nvidia.com/gpu=7, limited: limits.cpu=99,requests.nvidia.com/gpu=8",
        "quota",
        ("requests.nvidia.com/gpu is limited to 8, 7 are in use",),
    ),
    (
        "quota of memory",
        FORBIDDEN
        + "exceeded quota: q, requested: requests.memory=64Gi, used: requests.memory=100Gi, limited: requests.memory=128Gi",
        "quota",
        ("requests.memory is limited to 128Gi",),
    ),
    (
        "quota that wants everything stated",
        FORBIDDEN + "failed quota: q: must specify limits.cpu,limits.memory",
        "quota",
        ("every pod to specify limits.cpu, limits.memory",),
    ),
    (
        "limit range",
        FORBIDDEN + "maximum cpu usage per Container is 8, but limit is 16",
        "limit-range",
        ("LimitRange forbids it: maximum cpu usage per Container is 8, but limit is 16.",),
    ),
    (
        "webhook says no",
        'Error creating: admission webhook "vpod.lab" denied the request: the job has no owner',
        "webhook",
        ("webhook vpod.lab rejects its pods: the job has no owner",),
    ),
    (
        "the queue is closed, says the webhook of Volcano",
        'Error creating: admission webhook "vpod.volcano.sh" denied the request: can only submit job to queue with state `Open`, queue `nlp` status is `Closed`',
        "queue-closed",
        ("Its queue is closed or stopped", "vcctl queue operate"),
    ),
    (
        "webhook does not answer",
        'Error creating: Internal error occurred: failed calling webhook "mutate.lab": Post "https://hook.svc:443/m?timeout=10s": dial tcp 10.96.3.4:443: connect: connection refused',
        "webhook",
        ("webhook mutate.lab does not respond", "every job"),
    ),
    (
        "pod security",
        FORBIDDEN
        + 'violates PodSecurity "restricted:latest": privileged (container "main" must not set securityContext.privileged=true)',
        "pod-security",
        ("pod security rules",),
    ),
    (
        "account",
        'Error creating: pods "bert-" is forbidden: error looking up service account team-a/trainer: serviceaccount "trainer" not found',
        "missing-object",
        ("The ServiceAccount trainer that it references does not exist.",),
    ),
    (
        "priority class",
        FORBIDDEN + "no PriorityClass with name urgent was found",
        "missing-object",
        ("The PriorityClass urgent",),
    ),
    (
        "namespace",
        'Error creating: pods "bert-" is forbidden: unable to create new content in namespace team-a because it is being terminated',
        "namespace",
        ("being deleted",),
    ),
    (
        "something new",
        "Error creating: the moon is full",
        "other",
        ("rejects its pods: Error creating: the moon is full",),
    ),
]


@pytest.mark.parametrize(("name", "message", "cause", "says"), MESSAGES, ids=[m[0] for m in MESSAGES])
def test_refused(name: str, message: str, cause: str, says: tuple[str, ...]) -> None:
    explanation = explain_name("bert", "team-a", make_cluster_facts(events=[refused(message)]), NOW)
    text = english(explanation)
    assert (explanation.status, explanation.cause) == ("not-created", cause), text
    assert [part for part in (*says, "Its controller (Job) tried 14 times.") if part not in text] == [], text
    assert_renders(explanation)


def test_the_quota_now_and_who_uses_it() -> None:
    quota = QuotaFact(
        uid="q",
        name="gpu-quota",
        namespace="team-a",
        hard={"requests.nvidia.com/gpu": 16.0},
        used={"requests.nvidia.com/gpu": 16.0},
    )
    elsewhere = holding("c", "gpu-01", 8, namespace="team-b")
    facts = make_cluster_facts(
        events=[refused(QUOTA)],
        quotas=[quota],
        pods=[holding("a", "gpu-01", 8), holding("b", "gpu-02", 4), elsewhere],
        identities={"uid-a": Identity(user="alice"), "uid-b": Identity(user="bob"), "uid-c": Identity(user="carol")},
    )
    text = english(explain_name("bert", "team-a", facts, NOW))
    assert "Quota gpu-quota right now: 16 of 16 requests.nvidia.com/gpu in use." in text
    assert "a: alice (8), bob (4)." in text


NAMES: list[tuple[str, str, str | None, str]] = [
    ("by its name", "bert", "team-a", "quota"),
    ("in any namespace", "bert", None, "quota"),
    ("in another namespace there is none", "bert", "team-b", "unknown-name"),
    ("another name", "bart", "team-a", "unknown-name"),
    ("a part of the name is not the name", "ber", "team-a", "unknown-name"),
]


@pytest.mark.parametrize(("name", "asked", "namespace", "cause"), NAMES, ids=[n[0] for n in NAMES])
def test_lookup(name: str, asked: str, namespace: str | None, cause: str) -> None:
    explanation = explain_name(asked, namespace, make_cluster_facts(events=[refused(QUOTA)]), NOW)
    assert explanation.cause == cause
    assert_renders(explanation)


def test_a_deployment_by_its_replica_set() -> None:
    facts = make_cluster_facts(events=[refused(QUOTA, kind="ReplicaSet", name="serve-6799fc88d8")])
    assert explain_name("serve", "team-a", facts, NOW).cause == "quota"


def test_a_pod_by_its_name() -> None:
    explanation = explain_name(
        "bert-0", None, make_cluster_facts(pods=[pod(gpus=1, age=5)], nodes=[node("gpu-01")]), NOW
    )
    assert (explanation.status, explanation.pod.namespace, explanation.pod.name) == ("pending", "team-a", "bert-0")


JOB = [
    pod("w-0", node="gpu-01", phase="Running", statuses=(running_container(),)),
    pod("w-1", node="gpu-01", phase="Running", statuses=(looping(1),)),
    pod("w-2", gpus=1),
]


def test_the_worst_pod_of_a_job_first() -> None:
    facts = make_cluster_facts(pods=JOB, nodes=[node("gpu-01")], identities={p.uid: Identity(job="bert") for p in JOB})
    explanation = explain_name("bert", "team-a", facts, NOW)
    assert (explanation.pod.name, explanation.status) == ("w-1", "crashing")
    assert "The job has 3 pods: crashing 1, pending 1, running 1. This is about w-1." in english(explanation)
    assert_renders(explanation)


def test_a_job_that_runs_but_cannot_grow() -> None:
    """The job's pod runs; the user asks about the rejected next one."""
    facts = make_cluster_facts(
        pods=JOB[:1], nodes=[node("gpu-01")], identities={"uid-w-0": Identity(job="bert")}, events=[refused(QUOTA)]
    )
    assert explain_name("bert", "team-a", facts, NOW).cause == "quota"


def test_a_job_by_its_owner() -> None:
    owned = pod("w-0", gpus=1, age=5, owner=OwnerRef(kind="PyTorchJob", name="bert"))
    assert explain_name("bert", None, make_cluster_facts(pods=[owned], nodes=[node("gpu-01")]), NOW).pod.name == "w-0"


def test_a_job_that_kueue_holds_back_has_no_pods() -> None:
    waiting = WorkloadFact(
        uid="w",
        name="job-bert-1a2b3",
        namespace="team-a",
        owner=OwnerRef(kind="Job", name="bert", uid="uid-job"),
        queue="nlp",
        phase="pending",
        conditions=(ConditionFact(type="QuotaReserved", status=False, message="the moon is full"),),
    )
    explanation = explain_name("bert", "team-a", make_cluster_facts(workloads=[waiting]), NOW)
    assert (explanation.status, explanation.cause) == ("not-created", "quota")
    assert_renders(explanation)


GROUP = PodGroupFact(
    uid="g",
    name="bert-uid",
    namespace="team-a",
    owner=OwnerRef(kind="Job", name="bert", uid="uid-job"),
    queue="nlp",
    min_member=2,
    min_resources={GPU: 4.0},
)
VOLCANO: list[tuple[str, dict[str, Any], str]] = [
    ("its queue is closed", {"state": "closed"}, "queue-closed"),
    ("its queue is full", {"capacity": {GPU: 8.0}, "allocated": {GPU: 6.0}}, "quota"),
    ("its pods are not there", {}, "gang-incomplete"),
]


@pytest.mark.parametrize(("name", "fields", "cause"), VOLCANO, ids=[v[0] for v in VOLCANO])
def test_a_job_that_volcano_holds_back_has_no_pods(name: str, fields: dict[str, Any], cause: str) -> None:
    queue = QueueFact(uid="q", kind="VolcanoQueue", name="nlp", **fields)
    explanation = explain_name("bert", None, make_cluster_facts(pod_groups=[GROUP], queues=[queue]), NOW)
    assert (explanation.status, explanation.cause, explanation.pod.namespace) == ("not-created", cause, "team-a")
    assert_renders(explanation)


@given(st.text())
def test_no_message_breaks_it(message: str) -> None:
    assert parse_denial(message).cause
    assert parse_denial(f"exceeded quota: {message}, requested: {message}, used: {message}, limited: {message}").cause
