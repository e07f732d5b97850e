from __future__ import annotations

import msgspec
import pytest

from monitor.explain.gpu_shortage import _workers
from monitor.facts.cluster import GpuState, Holder, Identity
from monitor.facts.kube import PodFact, TaintFact
from monitor.present.explanation import render_explanation
from tests.explain.builders import NOW, Case, check, gpu_view, holding, names, node, owned, pod, view

EIGHT = pod(gpus=8)
HALF_FULL = [holding("a", "gpu-01", 4), holding("b", "gpu-02", 4)]
FULL = [holding("a", "gpu-01", 8), holding("b", "gpu-02", 5), holding("c", "gpu-02", 3)]
TWO = [node("gpu-01"), node("gpu-02")]


def held_by(user: str, pod_fact: PodFact) -> tuple[Holder, ...]:
    return (Holder(pod_uid=pod_fact.uid, user=user, live=True),)


CASES = [
    Case(
        "two nodes with 4 free each",
        EIGHT,
        "no-single-node-fits",
        says=(
            "No single node has 8 free GPUs (the most is 4 on gpu-01), but the cluster has 8 on 2 nodes.",
            "distributed training: 2 x 4 (2 workers with 4 GPUs each)",
            "Free by node: gpu-01 (4), gpu-02 (4).",
        ),
        facts={"nodes": TWO, "pods": HALF_FULL},
    ),
    Case(
        "free figures come from the view: a zombie's card is not free",
        EIGHT,
        "not-enough-gpus",
        says=(
            "it needs 8 GPUs, but only 7 of 16 are free",
            "1 GPU is blocked by pods or processes that no longer run: gpu-02 (1)",
        ),
        facts={
            "nodes": TWO,
            "pods": HALF_FULL,
            "view": view(free={"gpu-01": 4, "gpu-02": 3}, cards=[gpu_view("gpu-02", 0, GpuState.ZOMBIE)]),
        },
    ),
    Case(
        "a view older than the pods promises nothing that is taken",
        EIGHT,
        "no-single-node-fits",
        says=("the most is 4 on gpu-01",),
        facts={"nodes": TWO, "pods": HALF_FULL, "view": view(free={"gpu-01": 8, "gpu-02": 8})},
    ),
    Case(
        "just below: 7 in all are not enough",
        EIGHT,
        "not-enough-gpus",
        says=("it needs 8 GPUs, but only 7 of 16 are free on the 2 nodes it may use",),
        silent=("distributed",),
        facts={"nodes": TWO, "pods": [*HALF_FULL, holding("c", "gpu-02", 1)]},
    ),
    Case(
        "free GPUs on a cordoned node do not count, but are named",
        EIGHT,
        "not-enough-gpus",
        says=("it needs 8 GPUs, but only 4 of 8 are free on the 1 node", "cordoned): gpu-02 (8).", "kubectl uncordon"),
        silent=("distributed",),
        facts={"nodes": [node("gpu-01"), node("gpu-02", unschedulable=True)], "pods": HALF_FULL[:1]},
    ),
    Case(
        "free GPUs behind a taint are named with the taint",
        pod(gpus=4),
        "not-enough-gpus",
        says=("reserved (taint team=x:NoSchedule): gpu-02 (8)",),
        facts={
            "nodes": [node("gpu-01"), node("gpu-02", taints=(TaintFact(key="team", value="x", effect="NoSchedule"),))],
            "pods": [holding("a", "gpu-01", 8)],
        },
    ),
    Case(
        "GPUs that the pod does not select are not offered",
        pod(gpus=8, node_selector={"gpu": "a100"}),
        "not-enough-gpus",
        says=("does not match this pod's requirements (gpu=a100): gpu-02 (8)",),
        facts={
            "nodes": [node("gpu-01", labels={"gpu": "a100"}), node("gpu-02", labels={"gpu": "v100"})],
            "pods": [holding("a", "gpu-01", 8)],
        },
    ),
    Case(
        "who holds them",
        pod(gpus=1),
        "not-enough-gpus",
        says=("Largest holders there: alice (8), bob (5), team-a (3).", "> Wait."),
        facts={"nodes": TWO, "pods": FULL, "identities": owned(a="alice", b="bob")},
    ),
    Case(
        "idle ones could be given back",
        pod(gpus=2),
        "not-enough-gpus",
        says=("2 GPUs are held but unused: bob (2)", "Ask the owners of the idle GPUs"),
        silent=("blocked by",),
        facts={
            "nodes": TWO,
            "pods": FULL,
            "view": view(
                free={"gpu-01": 0, "gpu-02": 0},
                cards=[
                    gpu_view("gpu-02", index, GpuState.IDLE_HELD, holders=held_by("bob", FULL[1])) for index in range(2)
                ],
            ),
        },
    ),
    Case(
        "some are on their way back",
        pod(gpus=8),
        "not-enough-gpus",
        says=("When these pods end, 8 GPUs will be free: team-a/a",),
        facts={"nodes": TWO, "pods": [msgspec.structs.replace(FULL[0], deletion_at=NOW - 10), *FULL[1:]]},
    ),
    Case(
        "more than any node has",
        pod(gpus=16),
        "no-single-node-fits",
        says=("requests 16 GPUs on one node and can never run like this", "(gpu-01) has 8", "2 x 8"),
        facts={"nodes": TWO},
    ),
    Case(
        "more than any node has, and not free either",
        pod(gpus=16),
        "no-single-node-fits",
        says=("can never run like this", "at most 8 GPUs per worker", "still have to wait"),
        facts={"nodes": TWO, "pods": FULL},
    ),
    Case(
        "exactly what the largest node has can run one day",
        EIGHT,
        "not-enough-gpus",
        silent=("never",),
        facts={"nodes": TWO, "pods": FULL},
    ),
    Case(
        "no GPU anywhere",
        pod(gpus=1),
        "not-enough-gpus",
        says=("No node offers nvidia.com/gpu.", "device-plugin"),
        facts={"nodes": [node("cpu-01", gpus=0)]},
    ),
    Case(
        "a worker of a distributed job is told to shrink, not to become one",
        EIGHT,
        "no-single-node-fits",
        says=("Give each worker fewer GPUs",),
        silent=("Submit it as distributed training",),
        facts={
            "nodes": TWO,
            "pods": [*HALF_FULL, pod("bert-1", gpus=8)],
            "identities": {f"uid-bert-{index}": Identity(user="alice", job="bert") for index in range(2)},
        },
    ),
    Case(
        "workers go on cards of one model",
        EIGHT,
        "no-single-node-fits",
        says=("4 x 2",),
        facts={
            "nodes": [*TWO, node("gpu-03"), node("gpu-04"), node("gpu-05")],
            "pods": [
                *HALF_FULL[:1],
                *[holding(f"x{index}", f"gpu-0{index}", 6) for index in (2, 3, 4, 5)],
            ],
            "view": view(
                free={"gpu-01": 4, "gpu-02": 2, "gpu-03": 2, "gpu-04": 2, "gpu-05": 2},
                models={"gpu-01": "V100", "gpu-02": "A100", "gpu-03": "A100", "gpu-04": "A100", "gpu-05": "A100"},
            ),
        },
    ),
    Case(
        "another vendor's cards",
        pod(requests={"amd.com/gpu": 2.0}),
        "not-enough-gpus",
        says=("it needs 2 amd.com/gpu, but only 1 of 2 are free",),
        facts={
            "nodes": [node("gpu-01", allocatable={"amd.com/gpu": 2.0})],
            "pods": [holding("a", "gpu-01", 0, requests={"amd.com/gpu": 1.0})],
            "resource": "amd.com/gpu",
        },
    ),
    Case(
        "slices are counted by their own name, which the view does not count",
        pod(requests={"nvidia.com/mig-1g.10gb": 8.0}),
        "no-single-node-fits",
        says=("the most is 4 on gpu-01",),
        facts={
            "nodes": [node(f"gpu-0{i}", allocatable={"nvidia.com/mig-1g.10gb": 7.0, "pods": 110.0}) for i in (1, 2)]
            + [node("gpu-03", allocatable={"nvidia.com/mig-1g.10gb": 8.0, "pods": 110.0})],
            "pods": [
                holding(f"a{i}", f"gpu-0{i}", 0, requests={"nvidia.com/mig-1g.10gb": 3.0 if i < 3 else 8.0})
                for i in (1, 2, 3)
            ],
            "view": view(free={"gpu-01": 0, "gpu-02": 0, "gpu-03": 0}),
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_shortage(case: Case) -> None:
    check(case)


def test_the_hint_in_chinese() -> None:
    lines = render_explanation(check(CASES[0]), "zh")
    assert lines[1] == (
        "单机没有足够的空闲资源：需要 8 张 GPU，单个节点最多空闲 4（gpu-01），但集群共空闲 8，分布在 2 个节点上。"
    )
    assert any("请选择“分布式训练”提交：2 x 4" in line for line in lines)


LAYOUTS: list[tuple[str, list[int], int, tuple[int, int] | None]] = [
    ("two halves", [4, 4], 8, (2, 4)),
    ("two on one node, two on another", [5, 5], 8, (2, 4)),
    ("uneven", [5, 3], 8, (8, 1)),
    ("six and two", [6, 2], 8, (4, 2)),
    ("a prime number", [4, 4], 7, (7, 1)),
    ("not enough", [4, 3], 8, None),
    ("nothing", [], 8, None),
]


@pytest.mark.parametrize(("name", "free", "needs", "expect"), LAYOUTS, ids=[row[0] for row in LAYOUTS])
def test_workers_that_would_start_now(name: str, free: list[int], needs: int, expect: tuple[int, int] | None) -> None:
    assert _workers(free, needs) == expect
