"""Shared GPUs as the annotations of HAMi, Volcano, Aliyun and KAI and the labels of NVIDIA describe them."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.gpu_sharing import (
    MAX_GPUS,
    MAX_SHARES,
    GpuShare,
    RegisteredGpu,
    annotated_requests,
    assigned_shares,
    counts_slots,
    has_gpus,
    offers_whole_gpus,
    physical_gpus,
    registered_gpus,
    shares_gpus,
)
from monitor.facts.kube import NodeFact, PodFact

GPU = "nvidia.com/gpu"
MIB = 1024**2
HAMI = "hami.io/node-nvidia-register"
A, B = "GPU-9a3603f4-f66e-d48b-11ea-13e327064cca", "GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448"


MPS = {"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.count": "2"}
MIG = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}
VOLCANO = {"volcano.sh/node-vgpu-register": f"{A},10,1,100,T4,0,true:"}


def node(amounts: dict[str, float] | None = None, **fields: Any) -> NodeFact:
    amounts = amounts if amounts is not None else {GPU: 4.0}
    return NodeFact(uid="u", name="n1", capacity=amounts, allocatable=amounts, **fields)


def pod(requests: dict[str, float] | None = None, node: str | None = "n1") -> PodFact:
    return PodFact(uid="p", name="p", namespace="n", node=node, requests=requests or {GPU: 1.0})


def annotated(name: str, text: str) -> PodFact:
    return PodFact(uid="p", name="p", namespace="n", requests={GPU: 1.0}, annotations={name: text})


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        (
            f"{A},10,15360,100,NVIDIA-Tesla T4,0,true:{B},10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,1,true:",
            (RegisteredGpu(A, 10, 15360 * MIB, "NVIDIA-Tesla T4"),
             RegisteredGpu(B, 10, 32768 * MIB, "NVIDIA-Tesla V100-PCIE-32GB")),
        ),
        (
            f'[{{"id":"{A}","count":10,"devmem":24576,"devcore":100,"type":"NVIDIA-NVIDIA A10","health":true}}]',
            (RegisteredGpu(A, 10, 24576 * MIB, "NVIDIA-NVIDIA A10"),),
        ),
        (f"{A},ten,much,100,T4,0,true:", (RegisteredGpu(A, None, None, "T4"),)),
        ("[not json", ()), ('[{"id": 7}]', ()), ("", ()), (":::", ()), ("a,b:", ()),
    ],
)  # fmt: skip
def test_what_hami_registers(text: str, expect: tuple[RegisteredGpu, ...]) -> None:
    assert registered_gpus(node(annotations={HAMI: text})) == expect


def test_a_register_is_bounded() -> None:
    assert len(registered_gpus(node(annotations={HAMI: f"{A},10,1,100,T4,0,true:" * 1000}))) == MAX_GPUS
    assert len(registered_gpus(node(annotations={HAMI: f"{A},10,1,100,T4,0,true:" * 10_000}))) == 0


@pytest.mark.parametrize(
    ("name", "text", "expect"),
    [
        ("hami.io/vgpu-devices-allocated", f"{A},NVIDIA,3000,30:;", (GpuShare(A, None, 3000 * MIB, 0.3),)),
        ("hami.io/vgpu-devices-allocated", f"{A},NVIDIA,1000,0:;;,,0,0:;,,0,0:;", (GpuShare(A, None, 1000 * MIB),)),
        ("hami.io/vgpu-devices-allocated", f"{A},NVIDIA,500,10:{B},NVIDIA,500,10:;",
         (GpuShare(A, None, 500 * MIB, 0.1), GpuShare(B, None, 500 * MIB, 0.1))),
        ("volcano.sh/vgpu-ids-new", f"{B},NVIDIA,8000,50:", (GpuShare(B, None, 8000 * MIB, 0.5),)),
        ("ALIYUN_COM_GPU_MEM_IDX", "1", (GpuShare(None, 1),)),
        ("scheduler.framework.gpushare.allocation", '{"0":{"2":10},"1":{"3":4}}',
         (GpuShare(None, 2, 10 * 1024 * MIB), GpuShare(None, 3, 4 * 1024 * MIB))),
        ("hami.io/vgpu-devices-allocated", f"{A},NVIDIA,-1,x:;", (GpuShare(A),)),
        ("hami.io/vgpu-devices-allocated", "rubbish", ()), ("ALIYUN_COM_GPU_MEM_IDX", "-1", ()),
        ("scheduler.framework.gpushare.allocation", "[]", ()), ("other", "x", ()),
    ],
)  # fmt: skip
def test_what_a_scheduler_assigned(name: str, text: str, expect: tuple[GpuShare, ...]) -> None:
    assert assigned_shares(annotated(name, text)) == expect


def test_assignments_are_bounded_and_those_that_failed_do_not_count() -> None:
    assert len(assigned_shares(annotated("hami.io/vgpu-devices-allocated", f"{A},NVIDIA,1,1:" * 500))) == MAX_SHARES
    names = {"hami.io/vgpu-devices-allocated": f"{A},NVIDIA,1,1:;", "hami.io/bind-phase": "failed"}
    assert assigned_shares(PodFact(uid="p", name="p", namespace="n", annotations=names)) == ()


@pytest.mark.parametrize(
    ("name", "given", "shared", "gpus"),
    [
        ("whole GPUs", node(), False, 4),
        ("time slicing", node({GPU: 40.0}, labels={"nvidia.com/gpu.replicas": "10"}), True, 4),
        ("one replica is a GPU", node(labels={"nvidia.com/gpu.replicas": "1"}), False, 4),
        ("MPS", node({GPU: 40.0}, labels=MPS), True, 2),
        ("no sharing", node(labels={"nvidia.com/gpu.sharing-strategy": "none"}), False, 4),
        ("MIG slices only", node({GPU: 28.0}, labels=MIG), True, None),
        ("HAMi", node({GPU: 20.0}, annotations={HAMI: f"{A},10,1,100,T4,0,true:{B},10,1,100,T4,0,true:"}), True, 2),
        ("HAMi, unreadable", node({GPU: 20.0}, annotations={HAMI: ""}), True, None),
        ("Aliyun", node({"aliyun.com/gpu-count": 2.0, "aliyun.com/gpu-mem": 30.0}), False, 2),
        ("Volcano", node({"volcano.sh/vgpu-number": 20.0}, annotations=VOLCANO), False, 1),
        ("no GPUs", node({"cpu": 4.0}), False, None),
    ],
)  # fmt: skip
def test_a_node_that_shares_its_gpus(name: str, given: NodeFact, shared: bool, gpus: int | None) -> None:
    assert (shares_gpus(given), physical_gpus(given)) == (shared, gpus), name
    assert offers_whole_gpus(given, GPU) == (name in ("whole GPUs", "one replica is a GPU", "no sharing", "no GPUs"))
    assert has_gpus(given, GPU) == (name != "no GPUs")


def test_accelerators_of_other_vendors_are_no_gpus() -> None:
    given = node({"huawei.com/Ascend910": 8.0})
    assert (has_gpus(given, GPU), offers_whole_gpus(given, GPU), physical_gpus(given)) == (False, False, None)


def test_a_count_that_is_a_multiple_is_one_of_slots() -> None:
    assert [counts_slots(count, 4) for count in (4, 8, 9, 40)] == [False, True, False, True]
    assert not counts_slots(8, 0)


KAI = {"kai.scheduler/queue": "team-a"}
HALF = {"gpu-fraction": "0.5"}


@pytest.mark.parametrize(
    ("name", "annotations", "labels", "scheduler", "expect"),
    [
        ("half a GPU", HALF, KAI, None, {"kai.scheduler/gpu-fraction": 50.0}),
        ("by the scheduler", HALF, {}, "kai-scheduler", {"kai.scheduler/gpu-fraction": 50.0}),
        ("by the scheduler of Run:ai", {"gpu-fraction": ".25"}, {}, "runai-scheduler",
         {"kai.scheduler/gpu-fraction": 25.0}),
        ("a part of two GPUs", HALF | {"gpu-fraction-num-devices": "2"}, KAI, None,
         {"kai.scheduler/gpu-fraction": 100.0}),
        ("memory", {"gpu-memory": "2000"}, KAI, None, {"kai.scheduler/gpu-memory": 2000.0}),
        ("memory of two GPUs", {"gpu-memory": "2000", "gpu-fraction-num-devices": "2"}, KAI, None,
         {"kai.scheduler/gpu-memory": 4000.0}),
        ("at most a node", HALF | {"gpu-fraction-num-devices": "99999"}, KAI, None,
         {"kai.scheduler/gpu-fraction": 50.0 * MAX_GPUS}),
        ("of another scheduler", HALF, {"app": "web"}, "default-scheduler", {}),
        ("more than a GPU", {"gpu-fraction": "1.5"}, KAI, None, {}),
        ("nothing", {"gpu-fraction": "0"}, KAI, None, {}),
        ("no number", {"gpu-fraction": "nan", "gpu-memory": "-1"}, KAI, None, {}),
        ("empty", {"gpu-fraction": ""}, KAI, None, {}),
        ("neither", {"team": "a"}, KAI, None, {}),
    ],
)  # fmt: skip
def test_what_a_pod_asks_kai_for(
    name: str, annotations: dict[str, str], labels: dict[str, str], scheduler: str | None, expect: dict[str, float]
) -> None:
    assert annotated_requests(annotations, labels, scheduler) == expect, name


def test_a_pod_without_metadata_asks_for_nothing() -> None:
    assert annotated_requests(None, None, None) == {}
    assert annotated_requests(HALF, None, None) == {}
