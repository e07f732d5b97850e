"""Short constructors of nodes, GPUs and pods."""

from __future__ import annotations

from typing import Any

from monitor.facts import GpuFact, GpuInventory, GpuProcessFact, NodeSnapshot, PodDeviceFact
from monitor.facts.agents import AgentFact
from monitor.facts.kube import NodeFact, PodFact

NOW = 1_763_260_000.0
GIB = 1024**3
GPU = "nvidia.com/gpu"


def uuid(index: int, node: str = "n1") -> str:
    return f"GPU-{node}-{index:04d}"


def card(index: int = 0, node: str = "n1", **fields: Any) -> GpuFact:
    given: dict[str, Any] = {
        "model": "A100",
        "utilization_ratio": 0.0,
        "memory_used_bytes": 0,
        "memory_total_bytes": 80 * GIB,
    }
    return GpuFact(index=index, uuid=uuid(index, node), **(given | fields))


def process(pid: int = 100, index: int = 0, node: str = "n1", **fields: Any) -> GpuProcessFact:
    given: dict[str, Any] = {"kind": "compute", "state": "S", "state_since": NOW - 1000, "memory_bytes": GIB}
    return GpuProcessFact(gpu_uuid=uuid(index, node), pid=pid, **(given | fields))


def device(pod: PodFact, index: int = 0, node: str = "n1", **fields: Any) -> PodDeviceFact:
    given: dict[str, Any] = {
        "resource": GPU, "source": "pod-resources", "container": "c", "pod_uid": pod.uid, "gpu_uuid": uuid(index, node)
    }  # fmt: skip
    return PodDeviceFact(device_id=uuid(index, node), pod_name=pod.name, namespace=pod.namespace, **(given | fields))


def agent(
    *cards: GpuFact,
    node: str = "n1",
    processes: tuple[GpuProcessFact, ...] | None = (),
    devices: tuple[PodDeviceFact, ...] = (),
    received_at: float = NOW - 1,
    **fields: Any,
) -> AgentFact:
    given: dict[str, Any] = {"at": received_at, "gpu": GpuInventory(gpus=cards)}
    snapshot = NodeSnapshot(
        node=node, agent_version="0", gpu_processes=processes, pod_devices=devices, **(given | fields)
    )
    return AgentFact(target=f"{node}:9835", node=node, snapshot=snapshot, received_at=received_at)


def pod(name: str = "p", node: str | None = "n1", gpus: float = 1, **fields: Any) -> PodFact:
    given: dict[str, Any] = {"namespace": "team", "created_at": NOW - 9000, "started_at": NOW - 9000}
    given["phase"] = "Running" if node else "Pending"
    return PodFact(uid=f"uid-{name}", name=name, node=node, requests={GPU: gpus}, **(given | fields))


def node(name: str = "n1", gpus: float = 8, **fields: Any) -> NodeFact:
    given: dict[str, Any] = {"ready": True, "capacity": {GPU: gpus}, "allocatable": {GPU: gpus}}
    return NodeFact(uid=f"uid-{name}", name=name, **(given | fields))
