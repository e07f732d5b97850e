from __future__ import annotations

import pytest

from monitor.explain.keys import Key
from monitor.explain.model import Explanation, PodRef, PodStatus
from monitor.explain.pod import explain_pod
from monitor.facts.cluster import Identity
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.queues import PodGroupFact
from monitor.facts.text import Text
from monitor.present.explanation import render_explanation
from tests.explain.builders import NOW, holding, node, pod

WORLD = make_cluster_facts(
    nodes=[node("gpu-01"), node("gpu-02")],
    pods=[holding("a", "gpu-01", 4), holding("b", "gpu-02", 4)],
    identities={"uid-bert-0": Identity(user="alice", job="bert", queue="nlp")},
)
FOUND = explain_pod(pod(gpus=8, age=720), WORLD, NOW)


def test_english() -> None:
    assert render_explanation(FOUND, "en") == [
        "team-a/bert-0 is waiting for a node, for 12 min, user alice, job bert, queue nlp",
        "No single node has 8 free GPUs (the most is 4 on gpu-01), but the cluster has 8 on 2 nodes.",
        "  - Free by node: gpu-01 (4), gpu-02 (4).",
        "What to do:",
        "  > Submit it as distributed training: 2 x 4 (2 workers with 4 GPUs each) would start now.",
        "  > Or wait until one node has 8 free GPUs.",
    ]


def test_chinese() -> None:
    assert render_explanation(FOUND, "zh") == [
        "team-a/bert-0 在等待调度，已 12 分钟，用户 alice，作业 bert，队列 nlp",
        ("单机没有足够的空闲资源：需要 8 张 GPU，单个节点最多空闲 4（gpu-01），但集群共空闲 8，分布在 2 个节点上。"),
        "  - 各节点空闲：gpu-01 (4), gpu-02 (4)。",
        "怎么办：",
        "  > 请选择“分布式训练”提交：2 x 4（2 个 worker，每个 4 张 GPU），现在就能启动。",
        "  > 或者等待某个节点空出 8 张 GPU。",
    ]


@pytest.mark.parametrize("status", list(PodStatus))
def test_every_status_can_be_said(status: PodStatus) -> None:
    plain = Explanation(PodRef(None, "bert"), status, "done", Text(Key.DONE, {}))
    for lang in ("en", "zh"):
        lines = render_explanation(plain, lang)
        assert len(lines) == 2
        assert lines[0].startswith("bert ")


def test_no_such_language() -> None:
    with pytest.raises(KeyError):
        render_explanation(FOUND, "tlh")


def test_a_name_is_not_said_twice() -> None:
    explanation = Explanation(
        PodRef("team-a", "sweep", job="sweep"), PodStatus.NOT_CREATED, "quota", Text(Key.DONE, {})
    )
    assert render_explanation(explanation, "en")[0] == "team-a/sweep has no pods"


def test_the_queue_is_the_one_that_the_group_waits_in() -> None:
    group = PodGroupFact(uid="uid-group", name="bert", namespace="team-a", queue="vision")
    member = pod(gpus=1, annotations={"scheduling.k8s.io/group-name": "bert"})
    facts = make_cluster_facts(
        pods=[member], pod_groups=[group], identities={member.uid: Identity(user="alice", queue="team-a")}
    )
    assert render_explanation(explain_pod(member, facts, NOW), "en")[0].endswith(", user alice, queue vision")
