from __future__ import annotations

import pytest

from monitor.facts.kube import NodeRequirementFact, TaintFact, TolerationFact
from tests.explain.builders import GIB, Case, check, holding, names, node, pod

DGX = TaintFact(key="dedicated", value="vision", effect="NoSchedule")
CPU_ONLY = [node(f"cpu-0{i}", gpus=0) for i in range(3)]

CASES = [
    Case(
        "a taint, where the untainted nodes have no GPU: not for want of GPUs",
        pod(gpus=1),
        "taint",
        says=(
            "reserved by a taint that it does not tolerate (dedicated=vision:NoSchedule): gpu-01, gpu-02 (2 nodes)",
            "kubectl taint nodes NODE dedicated=vision:NoSchedule-",
        ),
        facts={"nodes": [*CPU_ONLY, node("gpu-01", taints=(DGX,)), node("gpu-02", taints=(DGX,))]},
    ),
    Case(
        "a taint that asks for no execution",
        pod(gpus=1),
        "taint",
        says=("maintenance:NoExecute",),
        facts={"nodes": [node("gpu-01", taints=(TaintFact(key="maintenance", effect="NoExecute"),))]},
    ),
    Case(
        "a full disk is healed, not tolerated",
        pod(gpus=1),
        "taint",
        says=("closed by Kubernetes", "The disk of gpu-01 is full", "Do not tolerate it"),
        silent=("add a toleration",),
        facts={
            "nodes": [node("gpu-01", taints=(TaintFact(key="node.kubernetes.io/disk-pressure", effect="NoSchedule"),))]
        },
    ),
    Case(
        "the wrong one of two taints tolerated",
        pod(gpus=1, tolerations=(TolerationFact(key="dedicated", operator="Exists"),)),
        "taint",
        says=("(sick:NoSchedule)",),
        silent=("vision",),
        facts={"nodes": [node("gpu-01", taints=(DGX, TaintFact(key="sick", effect="NoSchedule")))]},
    ),
    Case(
        "a selector that no node satisfies, and what there is instead",
        pod(gpus=1, node_selector={"gpu": "A100"}),
        "selector",
        says=(
            "It requires gpu=A100, which none of the 3 sufficiently large nodes matches.",
            "Nodes have gpu = a100 (2), v100 (1).",
        ),
        facts={
            "nodes": [
                node("gpu-01", labels={"gpu": "a100"}),
                node("gpu-02", labels={"gpu": "a100"}),
                node("gpu-03", labels={"gpu": "v100"}),
            ]
        },
    ),
    Case(
        "a label that no node has",
        pod(gpus=1, node_selector={"acelerator": "a100"}),
        "selector",
        says=("None of these nodes has the label acelerator.",),
        facts={"nodes": [node("gpu-01", labels={"accelerator": "a100"})]},
    ),
    Case(
        "an affinity",
        pod(gpus=1, node_affinity=((NodeRequirementFact(key="zone", operator="In", values=("east", "west")),),)),
        "selector",
        says=("zone in (east, west)", "Nodes have zone = north (1)."),
        facts={"nodes": [node("gpu-01", labels={"zone": "north"})]},
    ),
    Case(
        "a selector that fits only nodes without GPUs",
        pod(gpus=1, node_selector={"pool": "cpu"}),
        "selector",
        says=("Nodes have pool = gpu (1).",),
        facts={"nodes": [node("cpu-01", gpus=0, labels={"pool": "cpu"}), node("gpu-01", labels={"pool": "gpu"})]},
    ),
    Case(
        "lifting the taint would help, lifting the selector would not",
        pod(gpus=8, node_selector={"pool": "a"}),
        "taint",
        says=("Do not match its requirements: gpu-02, gpu-03",),
        facts={
            "nodes": [node("gpu-01", labels={"pool": "a"}, taints=(DGX,)), node("gpu-02"), node("gpu-03")],
            "pods": [holding("x", "gpu-02", 1), holding("y", "gpu-03", 1)],
        },
    ),
    Case(
        "the wanted nodes are reserved: it does not matter how many others there are",
        pod(gpus=1, node_selector={"pool": "a"}),
        "taint",
        says=(
            "(dedicated=vision:NoSchedule): gpu-01 (1 node)",
            "Do not match its requirements: gpu-02, gpu-03, gpu-04 (3 nodes)",
        ),
        silent=("Cordoned",),
        facts={
            "nodes": [
                node("gpu-01", labels={"pool": "a"}, taints=(DGX,)),
                *(node(name, unschedulable=name == "gpu-04") for name in ("gpu-02", "gpu-03", "gpu-04")),
            ]
        },
    ),
    Case(
        "all cordoned",
        pod(gpus=1),
        "unschedulable-other",
        says=("accept no new pods (cordoned): gpu-01", "kubectl uncordon"),
        facts={"nodes": [*CPU_ONLY, node("gpu-01", unschedulable=True)]},
    ),
    Case(
        "all down",
        pod(gpus=1),
        "unschedulable-other",
        says=("down (not ready): gpu-01, gpu-02", "systemctl status kubelet", "Cordoned: gpu-03"),
        facts={"nodes": [node("gpu-01", ready=False), node("gpu-02", ready=None), node("gpu-03", unschedulable=True)]},
    ),
    Case(
        "GPUs wait for CPU",
        pod(gpus=2, cpu=32),
        "unschedulable-other",
        says=("needs 32 cores, the most is 6 on gpu-01", "Because of that, 8 GPUs there (1 node) stay free"),
        facts={"nodes": [node("gpu-01")], "pods": [holding("loader", "gpu-01", 0, cpu=90)]},
    ),
    Case(
        "just enough CPU is enough",
        pod(gpus=2, cpu=6, age=5),
        "unschedulable-other",
        says=("should start any moment: gpu-01 has room",),
        facts={"nodes": [node("gpu-01")], "pods": [holding("loader", "gpu-01", 0, cpu=90)]},
    ),
    Case(
        "memory, without any GPU asked for",
        pod(memory=600 * GIB),
        "unschedulable-other",
        says=("needs 600 GiB, the most is 512 GiB on cpu-00",),
        silent=("GPU",),
        facts={"nodes": CPU_ONLY},
    ),
    Case(
        "pod count",
        pod(),
        "unschedulable-other",
        says=("reached its pod limit (gpu-01", "raise maxPods"),
        facts={"nodes": [node("gpu-01")], "pods": [holding(f"p{i}", "gpu-01", 0, cpu=0) for i in range(110)]},
    ),
    Case(
        "a resource of another kind",
        pod(requests={"rdma/hca": 2.0}),
        "unschedulable-other",
        says=("No node has enough rdma/hca: it needs 2, the most is 1 on gpu-01",),
        facts={"nodes": [node("gpu-01", allocatable={"rdma/hca": 1.0})]},
    ),
    Case("no node at all", pod(gpus=1), "unschedulable-other", says=("No nodes of the cluster are known.",)),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_blocked(case: Case) -> None:
    check(case)
