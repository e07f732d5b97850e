from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.cluster import Identity
from monitor.facts.kube import PodFact, TaintFact, TolerationFact
from monitor.facts.queues import QueueFact
from tests.explain.builders import GPU, Case, check, holding, names, node, owned, pod

TAINT = TaintFact(key="dedicated", value="vision", effect="NoSchedule")


def later(name: str = "fast-0", node_name: str = "gpu-01", gpus: float = 2, **more: Any) -> PodFact:
    return holding(name, node_name, gpus, **({"age": 300} | more))


CASES = [
    Case(
        "a smaller one that fitted: with its GPUs this one would run",
        pod(gpus=4),
        "overtaken",
        says=(
            "A later pod was served first: team-a/fast-0 of bob, submitted 5 min after this one",
            "runs with 2 GPUs on gpu-01.",
            "Why: it requests only 2 GPUs, for which there is room; not for 4 GPUs.",
            "Not enough is free",
        ),
        facts={"nodes": [node("gpu-01", gpus=4)], "pods": [later()], "identities": owned(fast_0="bob")},
    ),
    Case(
        "its GPUs would not be enough: a fact, not the reason",
        pod(gpus=8),
        "not-enough-gpus",
        says=("A later pod was served first: team-a/fast-0", "for which there is room; not for 8 GPUs"),
        facts={"nodes": [node("gpu-01")], "pods": [holding("old", "gpu-01", 6), later()]},
    ),
    Case(
        "an earlier one did not overtake",
        pod(gpus=4),
        "not-enough-gpus",
        silent=("later pod",),
        facts={"nodes": [node("gpu-01", gpus=4)], "pods": [later(age=601)]},
    ),
    Case(
        "submitted in the same second: not later",
        pod(gpus=4),
        "not-enough-gpus",
        silent=("later pod",),
        facts={"nodes": [node("gpu-01", gpus=4)], "pods": [later(age=600)]},
    ),
    Case(
        "another pool of nodes is no overtaking",
        pod(gpus=8, node_selector={"gpu": "a100"}),
        "not-enough-gpus",
        silent=("later pod",),
        facts={
            "nodes": [node("gpu-01", labels={"gpu": "a100"}), node("gpu-02", labels={"gpu": "v100"})],
            "pods": [holding("old", "gpu-01", 8), later(node_name="gpu-02", gpus=8)],
        },
    ),
    Case(
        "a higher priority",
        pod(gpus=4, priority=0),
        "overtaken",
        says=("Why: its priority is higher (1000; this pod has 0).",),
        facts={"nodes": [node("gpu-01", gpus=4)], "pods": [later(gpus=4, priority=1000)]},
    ),
    Case(
        "a taint that the other one tolerates",
        pod(gpus=4),
        "not-enough-gpus",
        says=("Why: it tolerates the taint dedicated=vision:NoSchedule of gpu-02, this pod does not.",),
        facts={
            "nodes": [node("gpu-01", gpus=4), node("gpu-02", gpus=4, taints=(TAINT,))],
            "pods": [
                holding("old", "gpu-01", 4),
                later(node_name="gpu-02", gpus=4, tolerations=(TolerationFact(key="dedicated", operator="Exists"),)),
            ],
        },
    ),
    Case(
        "another queue that has room",
        pod(gpus=4, scheduler="volcano", labels={"volcano.sh/queue-name": "nlp"}),
        "quota",
        says=("Why: its queue cv has room; this pod's queue nlp does not.",),
        facts={
            "nodes": [node("gpu-01")],
            "pods": [later(gpus=4)],
            "queues": [QueueFact(uid="q", kind="VolcanoQueue", name="nlp", capacity={GPU: 4.0}, allocated={GPU: 4.0})],
            "identities": {"uid-fast-0": Identity(user="bob", queue="cv"), "uid-bert-0": Identity(queue="nlp")},
        },
    ),
    Case(
        "nothing tells why",
        pod(gpus=4),
        "overtaken",
        says=("The pods do not show why: the scheduler does not preserve the order of submission.",),
        facts={"nodes": [node("gpu-01", gpus=4)], "pods": [later(gpus=4)]},
    ),
    Case(
        "the largest is named, the others are counted",
        pod(gpus=8),
        "overtaken",
        says=("team-a/c", "2 more pods overtook it too"),
        facts={"nodes": [node("gpu-01")], "pods": [later("a", gpus=1), later("b", gpus=2), later("c", gpus=5)]},
    ),
    Case(
        "a later pod of the same job is no stranger",
        pod(gpus=4),
        "not-enough-gpus",
        silent=("later pod",),
        facts={
            "nodes": [node("gpu-01", gpus=4)],
            "pods": [later(gpus=4)],
            "identities": {"uid-fast-0": Identity(job="bert"), "uid-bert-0": Identity(job="bert")},
        },
    ),
    Case(
        "what is on its way out, has ended, or has no GPU overtook nobody",
        pod(gpus=4),
        "not-enough-gpus",
        silent=("later pod",),
        facts={
            "nodes": [node("gpu-01", gpus=4)],
            "pods": [later("a", gpus=4, deletion_at=1.0), later("b", phase="Succeeded"), later("c", gpus=0)],
        },
    ),
    Case(
        "a pod without GPUs is not overtaken by GPU jobs",
        pod(cpu=100),
        "unschedulable-other",
        silent=("later pod",),
        facts={"nodes": [node("gpu-01")], "pods": [later(gpus=4)]},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_overtaken(case: Case) -> None:
    check(case)
