# ruff: noqa: E501  # tables: one row is one line
from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.rules.quota_exhausted import RULE, Limits
from monitor.facts.cluster import ClusterView, Identity, SourceView
from monitor.facts.kube import EventFact, OwnerRef, PodFact
from monitor.facts.queues import PodGroupFact, QueueFact, QuotaFact, WorkloadFact
from tests.detect.builders_pods import PODS_UNSEEN, after_change, due, held, none, one, text
from tests.explain.builders import GPU, NOW, event, holding, pod


def refusal(
    needs: int = 4, used: int = 8, limit: int = 8, *, key: str = f"requests.{GPU}", ago: float = 60
) -> EventFact:
    said = f'Error creating: pods "x" is forbidden: exceeded quota: gpus, requested: {key}={needs}, used: {key}={used}, limited: {key}={limit}'
    return event("FailedCreate", said, ago=ago, kind="Job", name="train", involved_uid="uid-train")


def quota(used: float = 8, limit: float = 8, key: str = f"requests.{GPU}") -> QuotaFact:
    return QuotaFact(uid="q", name="gpus", namespace="team-a", hard={key: limit}, used={key: used})


def volcano(used: float = 8, limit: float = 8) -> QueueFact:
    return QueueFact(uid="v", kind="VolcanoQueue", name="nlp", capacity={GPU: limit}, allocated={GPU: used})


def group(gpus: float = 4, **more: Any) -> PodGroupFact:
    owner = OwnerRef(kind="Job", name="train")
    return PodGroupFact(
        uid="g", name="g", namespace="team-a", queue="nlp", owner=owner, min_resources={GPU: gpus}, **more
    )


def waits(gpus: float = 4, name: str = "w", **more: Any) -> PodFact:
    return pod(
        name, gpus=gpus, **({"scheduler": "volcano", "annotations": {"scheduling.k8s.io/group-name": "g"}} | more)
    )


def kueue(used: float = 8, **more: Any) -> list[QueueFact]:
    cluster = QueueFact(uid="c", kind="ClusterQueue", name="all", guarantee={GPU: 8.0}, allocated={GPU: used}, **more)
    return [cluster, QueueFact(uid="l", kind="LocalQueue", name="mine", namespace="team-a", parent="all")]


def workload(phase: str = "pending", gpus: float = 4, **more: Any) -> WorkloadFact:
    owner = OwnerRef(kind="Job", name="train")
    return WorkloadFact(
        uid="w",
        name="job-train",
        namespace="team-a",
        queue="mine",
        phase=phase,
        requests={GPU: gpus},
        owner=owner,
        **more,
    )


TEAM, NLP, ALL = {"namespace": "team-a"}, {"queue": "nlp"}, {"queue": "all"}
CASES: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("a namespace is full", {"quotas": [quota()], "events": [refusal()]}, TEAM),
    ("nearly, and the job does not fit", {"quotas": [quota(used=6)], "events": [refusal(used=6)]}, TEAM),
    ("a quota without requests.", {"quotas": [quota(key=GPU)], "events": [refusal(key=GPU)]}, TEAM),
    ("a Volcano queue is full", {"queues": [volcano()], "pod_groups": [group()], "pods": [waits()]}, NLP),
    ("the group as a whole does not fit", {"queues": [volcano(used=2)], "pod_groups": [group(8)], "pods": [waits(1)]}, NLP),
    ("a Kueue queue is full", {"queues": kueue(), "workloads": [workload()]}, ALL),
    ("its limit is beyond what is its own", {"queues": kueue(used=12, capacity={GPU: 12.0}), "workloads": [workload()]}, ALL),
]  # fmt: skip


@pytest.mark.parametrize(("name", "facts", "labels"), CASES, ids=[case[0] for case in CASES])
def test_full_and_work_waits(name: str, facts: dict[str, Any], labels: dict[str, str]) -> None:
    finding = one(RULE, **facts)
    assert finding.labels == labels
    assert "1 job is waiting" in text(finding)
    assert "train" in text(finding)
    assert "1 个作业在等待" in text(finding, "zh")


QUIET: list[tuple[str, dict[str, Any]]] = [
    ("full, and nothing waits", {"quotas": [quota()], "queues": [volcano(), *kueue()]}),
    ("something was refused, and there is room again", {"quotas": [quota(used=4)], "events": [refusal()]}),
    ("something was refused long ago", {"quotas": [quota()], "events": [refusal(ago=1801)]}),
    ("refused for want of CPU", {"quotas": [quota()], "events": [refusal(key="requests.cpu")]}),
    ("refused by another quota", {"quotas": [QuotaFact(uid="o", name="other", namespace="team-a", hard={GPU: 8.0}, used={GPU: 8.0})], "events": [refusal()]}),
    ("it asks for more than there is at all", {"quotas": [quota(used=0)], "events": [refusal(needs=16, used=0)]}),
    ("a queue with room", {"queues": [volcano(used=4)], "pod_groups": [group()], "pods": [waits()]}),
    ("what waits needs no GPU", {"queues": [volcano()], "pod_groups": [group(0)], "pods": [waits(0)]}),
    ("it waits in another queue", {"queues": [volcano()], "pods": [waits(annotations={}, scheduler=None)]}),
    ("what waited was let through", {"queues": kueue(), "workloads": [workload("admitted")]}),
    ("what waits is switched off", {"queues": kueue(), "workloads": [workload(active=False)]}),
    ("a queue without a limit", {"queues": [QueueFact(uid="v", kind="VolcanoQueue", name="nlp", allocated={GPU: 99.0})], "pod_groups": [group()], "pods": [waits()]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "facts"), QUIET, ids=[case[0] for case in QUIET])
def test_not_exhausted(name: str, facts: dict[str, Any]) -> None:
    assert none(RULE, **facts)


def test_a_group_waits_as_one() -> None:
    pods = [waits(name=f"w{index}", gpus=1) for index in range(4)]
    assert "1 job is waiting for 4 GPUs: train." in text(one(RULE, queues=[volcano()], pod_groups=[group()], pods=pods))


def test_it_says_who_has_them() -> None:
    pods = [holding("a", "n1", 6), holding("b", "n1", 2)]
    identities = {"uid-a": Identity(user="li", queue="mine"), "uid-b": Identity(user="wu", queue="mine")}
    said = text(one(RULE, queues=kueue(), workloads=[workload()], pods=pods, identities=identities))
    assert "li (6), wu (2)" in said
    said = text(one(RULE, quotas=[quota()], events=[refusal()], pods=pods, identities=identities), "zh")
    assert "li (6), wu (2)" in said


def test_a_limit_of_its_own() -> None:
    assert none(RULE, limits=Limits(refused=30), quotas=[quota()], events=[refusal()])


BLIND = [
    ("pods", PODS_UNSEEN),
    ("quotas", ClusterView(at=NOW, sources=(SourceView(name="resourcequotas", ok=False),))),
    ("queues", ClusterView(at=NOW, sources=(SourceView(name="clusterqueues.kueue.x-k8s.io", ok=False),))),
]


@pytest.mark.parametrize(("name", "view"), BLIND, ids=[case[0] for case in BLIND])
def test_held_while_it_cannot_be_known(name: str, view: ClusterView) -> None:
    before = {"quotas": [quota()], "events": [refusal()]}
    assert [left.held for left in held(RULE, before, {"view": view})] == [True]
    assert held(RULE, before, {}) == ()


def test_when_time_alone_changes_it() -> None:
    assert due(RULE, quotas=[quota()], events=[refusal(ago=600)]) == 1200
    assert due(RULE, queues=kueue(), workloads=[workload()]) is None


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("refused", {"quotas": [quota()]}, {"quotas": [quota()], "events": [refusal()]}),
    ("less quota", {"quotas": [quota(limit=16)], "events": [refusal()]}, {"quotas": [quota()], "events": [refusal()]}),
    ("a pod waits", {"queues": [volcano()]}, {"queues": [volcano()], "pods": [waits(annotations={})], "identities": {"uid-w": Identity(queue="nlp")}}),
    ("a workload waits", {"queues": kueue(), "workloads": [workload("admitted")]}, {"queues": kueue(), "workloads": [workload()]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "before", "after"), CHANGES, ids=[case[0] for case in CHANGES])
def test_a_change_is_found(name: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    assert len(after_change(RULE, before, after)) == 1
    assert after_change(RULE, after, before) == ()


def test_a_quota_of_gpu_memory_is_told_in_its_unit() -> None:
    memory = "aliyun.com/gpu-mem"
    facts = {
        "quotas": [quota(used=28, limit=32, key=f"requests.{memory}")],
        "events": [refusal(needs=10, used=28, limit=32, key=f"requests.{memory}")],
        "pods": [holding("a", "gpu-01", 0, requests={memory: 28.0})],
    }
    told = text(one(RULE, **facts))
    assert "uses 28 GiB of the 32 GiB of GPU memory that quota gpus allows" in told
    assert "1 job is waiting for 10 GiB of GPU memory: train." in told
    assert "(28 GiB)" in told
    assert "GPUs" not in told
