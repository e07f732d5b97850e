from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.facts.cluster import ClusterView, GpuState, GpuView, Identity, NodeView
from monitor.facts.kube import PodFact, TerminationFact
from monitor.facts.text import Evidence
from monitor.facts.workload import ContainerFact, ContainerUsageFact, LogFact, ShmFact
from tests.explain.builders import GIB, NOW, Case, agent, check, gpu_view, names, node, pod, running_container, view

CONTAINER = "c" * 64
HERE = {"nodes": [node("gpu-01")]}


def training(**more: Any) -> PodFact:
    fields: dict[str, Any] = {"gpus": 2, "node": "gpu-01", "phase": "Running", "statuses": (running_container(),)}
    return pod(**(fields | more))


def cards(state: GpuState = GpuState.BUSY, count: int = 2, **more: Any) -> list[GpuView]:
    fields: dict[str, Any] = {"utilization_ratio": 0.9, "memory_used_bytes": 30 * GIB} | more
    return [gpu_view("gpu-01", index, state, training(), **fields) for index in range(count)]


IDLE: dict[str, Any] = {"idle_since": NOW - 7200, "utilization_ratio": 0.0}
SERVICE = {"uid-bert-0": Identity(job="chat", inference=True)}
BUSY = HERE | {"view": view(cards=cards())}
LOW = HERE | {"view": view(cards=cards(utilization_ratio=0.05))}


def logs(**fields: Any) -> dict[str, Any]:
    return {"agents": [agent("gpu-01", logs=(LogFact(container_id=CONTAINER, **fields),))]}


def container(number: int) -> ContainerFact:
    return ContainerFact(id=str(number), runtime="docker", state="running", pod_uid="uid-bert-0")


def usage(number: int, **figures: Any) -> ContainerUsageFact:
    return ContainerUsageFact(container_id=str(number), **figures)


def silent_node() -> ClusterView:
    unknown = gpu_view("gpu-01", 0, GpuState.UNKNOWN, training())
    return ClusterView(at=NOW, nodes=(NodeView(name="gpu-01", silent_since=NOW - 300),), gpus=(unknown,))


SILENCED = msgspec.structs.replace(logs(size_bytes=0)["agents"][0], silent_since=NOW - 60)

CASES = [
    Case("without a GPU", training(gpus=0), "running", says=("It requested no GPU",), facts=HERE),
    Case(
        "well, with figures",
        training(),
        "busy",
        says=("It is running normally, 2 GPUs busy on gpu-01.", "GPU: 90% busy, 60 GiB"),
        silent=("What to do",),
        facts=BUSY,
    ),
    Case(
        "what it uses of the host",
        training(),
        "busy",
        says=("Host: 7.5 cores, 20 GiB of memory.",),
        facts=BUSY
        | {
            "agents": [
                agent(
                    "gpu-01",
                    containers=tuple(container(number) for number in range(2)),
                    container_usage=(
                        usage(0, cpu_cores=7.0, memory_bytes=12 * GIB),
                        usage(1, cpu_cores=0.5, memory_bytes=8 * GIB),
                        usage(2, cpu_cores=9.0, memory_bytes=GIB),
                    ),
                )
            ]
        },
    ),
    Case(
        "idle",
        training(),
        "idle",
        says=(
            "holds 2 GPUs on gpu-01 and has not used them for 2 h",
            "still holds 60 GiB of GPU memory",
            "team-a: stop it",
        ),
        status="idle",
        facts=HERE | {"view": view(cards=cards(GpuState.IDLE_HELD, **IDLE))},
    ),
    Case(
        "an inference service that waits",
        training(),
        "waiting-for-requests",
        says=(
            "It is an inference service with 2 GPUs on gpu-01",
            "no requests to work on for 2 h",
            "nothing is released",
        ),
        silent=("stop it",),
        status="running",
        facts=HERE | {"view": view(cards=cards(GpuState.IDLE_HELD, **IDLE)), "identities": SERVICE},
    ),
    Case(
        "an inference service with little load",
        training(),
        "busy",
        says=("It is an inference service",),
        silent=("What to do",),
        facts=LOW | {"identities": SERVICE},
    ),
    Case(
        "just not at work: no alarm",
        training(),
        "waiting",
        says=("Loading data, compiling and saving look like that",),
        silent=("What to do",),
        facts=HERE | {"view": view(cards=cards(idle_since=NOW - 60, utilization_ratio=0.0))},
    ),
    Case(
        "since the last of its cards went idle",
        training(),
        "waiting",
        says=("for 1 min",),
        facts=HERE
        | {
            "view": view(
                cards=[
                    *cards(count=1, idle_since=NOW - 7200),
                    gpu_view("gpu-01", 1, GpuState.BUSY, training(), idle_since=NOW - 60),
                ]
            )
        },
    ),
    Case(
        "half of its cards",
        training(),
        "partly-idle",
        says=("1 of its 2 GPUs are unused",),
        facts=HERE
        | {"view": view(cards=[*cards(count=1), gpu_view("gpu-01", 1, GpuState.IDLE_HELD, training(), **IDLE)])},
    ),
    Case(
        "hardly at work, nothing tells why",
        training(),
        "low-use",
        says=("busy only 5% of the time", "Usual cause: data loading"),
        facts=LOW,
    ),
    Case("30 % is work", training(), "busy", facts=HERE | {"view": view(cards=cards(utilization_ratio=0.3))}),
    Case(
        "the CPU is at its limit",
        training(),
        "low-use",
        says=("Its CPU usage is at the limit (3.9 of 4 cores)",),
        silent=("Usual cause: data loading",),
        facts=LOW
        | {
            "agents": [
                agent(
                    "gpu-01",
                    container_usage=(ContainerUsageFact(container_id=CONTAINER, cpu_cores=3.9, cpu_limit_cores=4.0),),
                )
            ]
        },
    ),
    Case(
        "the CPU has room",
        training(),
        "low-use",
        silent=("Its CPU",),
        facts=LOW
        | {
            "agents": [
                agent(
                    "gpu-01",
                    container_usage=(ContainerUsageFact(container_id=CONTAINER, cpu_cores=3.5, cpu_limit_cores=4.0),),
                )
            ]
        },
    ),
    Case(
        "shared memory is nearly full",
        training(),
        "low-use",
        says=("/dev/shm is nearly full: 60 MiB of 64 MiB. A bus error is imminent.", "the default of 64 MiB"),
        facts=LOW
        | {
            "agents": [
                agent(
                    "gpu-01",
                    shm=(ShmFact(size_bytes=64 * 1024**2, used_bytes=60 * 1024**2, device=1, container_id=CONTAINER),),
                )
            ]
        },
    ),
    Case(
        "a log that stays empty while the cards work",
        training(),
        "log-empty",
        says=("its log has been empty for 1 h", "PYTHONUNBUFFERED=1"),
        status="silent",
        facts=BUSY | logs(size_bytes=0),
    ),
    Case(
        "empty for less than 10 min",
        training(statuses=(running_container(started_at=NOW - 600),)),
        "busy",
        facts=BUSY | logs(size_bytes=0),
    ),
    Case(
        "a log that stopped",
        training(),
        "log-stopped",
        says=("has not grown for 40 min",),
        status="silent",
        facts=BUSY | logs(size_bytes=10, written_at=NOW - 2400),
    ),
    Case("a log of half an hour ago", training(), "busy", facts=BUSY | logs(size_bytes=10, written_at=NOW - 1800)),
    Case(
        "a log that cannot be read is not empty",
        training(),
        "busy",
        facts=BUSY | logs(size_bytes=0, error="PermissionError"),
    ),
    Case(
        "idle and without a word is idle",
        training(),
        "idle",
        status="idle",
        facts=HERE | {"view": view(cards=cards(GpuState.IDLE_HELD, **IDLE))} | logs(size_bytes=0),
    ),
    Case(
        "a card is ill",
        training(),
        "gpu-faulty",
        says=("1 of its GPUs is faulty (GPU 0): xid 79", "cordon gpu-01"),
        facts=HERE
        | {
            "view": view(
                cards=[*cards(GpuState.FAULTY, 1, evidence=(Evidence(key="xid", values={"code": 79}),)), *cards()[1:]]
            )
        },
    ),
    Case(
        "a process hangs",
        training(),
        "gpu-wedged",
        says=("stuck on 2 GPUs of gpu-01 (GPU 0, 1): process-state D",),
        facts=HERE
        | {
            "view": view(
                cards=cards(GpuState.WEDGED, evidence=(Evidence(key="process-state", values={"state": "D", "pid": 1}),))
            )
        },
    ),
    Case(
        "shared memory is nearly full while the cards are busy",
        training(),
        "busy",
        says=("/dev/shm is nearly full", "medium: Memory"),
        facts=BUSY
        | {
            "agents": [agent("gpu-01", shm=(ShmFact(size_bytes=100, used_bytes=85, device=1, container_id=CONTAINER),))]
        },
    ),
    Case(
        "shared memory of another container, or with room",
        training(),
        "busy",
        silent=("/dev/shm",),
        facts=BUSY
        | {
            "agents": [
                agent(
                    "gpu-01",
                    shm=(
                        ShmFact(size_bytes=100, used_bytes=84, device=1, container_id=CONTAINER),
                        ShmFact(size_bytes=100, used_bytes=100, device=2, container_id="x"),
                        ShmFact(size_bytes=100, used_bytes=100, device=3),
                    ),
                )
            ]
        },
    ),
    Case(
        "its node is down",
        training(),
        "node-not-ready",
        says=("whether it is still running is unknown",),
        facts={"nodes": [node("gpu-01", ready=None)], "view": view(cards=cards())},
    ),
    Case(
        "no agent",
        training(),
        "not-seen",
        says=("their activity is not visible", "No agent on gpu-01"),
        silent=("well",),
        facts=HERE,
    ),
    Case(
        "a silent agent",
        training(),
        "not-seen",
        says=("The agent on gpu-01 does not respond.",),
        facts=HERE | {"view": silent_node()},
    ),
    Case(
        "it was restarted before",
        training(statuses=(running_container(restart_count=3, last=TerminationFact(exit_code=137)),)),
        "busy",
        says=("was restarted 3 times; the last time it ended with exit code 137",),
        facts=BUSY,
    ),
    Case(
        "what an agent said before it fell silent proves nothing",
        training(),
        "busy",
        facts=BUSY | {"agents": [SILENCED]},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_running(case: Case) -> None:
    check(case, "running")


def test_since_when_it_is_idle() -> None:
    idle = next(case for case in CASES if case.name == "idle")
    assert check(idle, "running").seconds == 7200
