"""What is recorded of a cluster."""

from __future__ import annotations

import pytest

from monitor.facts import DiskFact, GpuFact, GpuInventory, HostFact, ShmFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import (
    ClusterView,
    FreeView,
    GpuState,
    Identity,
    NodeView,
    PodView,
    QueueView,
    UsageView,
)
from monitor.facts.node import NodeSnapshot
from monitor.history.model import METRICS, HistoryMetric, HistorySubject
from monitor.history.samples import MAX_DISKS_PER_NODE, Sampler
from tests.report.builders import HOUR0, gpu, holder

GIB = 1 << 30


def pod(name: str, gpus: float, load: float | None, job: str | None = "bert", node: str | None = "n1") -> PodView:
    return PodView(
        uid=name, name=name, namespace="lab", phase="Running", node=node, requested_gpus=gpus,
        identity=Identity(user="zhang", job=job), usage=UsageView(gpu_utilization_ratio=load),
    )  # fmt: skip


VIEW = ClusterView(
    at=HOUR0,
    gpus=(
        gpu(GpuState.BUSY, holder(), load=0.5),
        gpu(GpuState.IDLE_HELD, holder("li", "cv"), index=1, load=0.0),
        gpu(GpuState.ZOMBIE, holder("li", "cv", live=False), index=2, load=0.7),
        gpu(GpuState.UNKNOWN, node="n2"),
    ),
    nodes=(NodeView(name="n1", free=5), NodeView(name="n2", free=None)),
    free=(FreeView(model="A100", total=16, free=5, largest_on_one_node=5),),
    queues=(QueueView(name="nlp", used=1, waiting=2, free=7), QueueView(name="cv", used=1, waiting=0)),
    users={"zhang": UsageView(gpus=1, gpu_utilization_ratio=0.5), "li": UsageView(gpus=1)},
    pods=(
        pod("a", 2, 0.4),
        pod("b", 1, None),
        pod("c", 0, 0.8, job=None),
        pod("d", 8, None, node=None),
        pod("e", 0, None),
    ),
)


def host(busy: float, idle: float) -> HostFact:
    return HostFact(
        cpus=8, memory_total_bytes=100, memory_available_bytes=40, cpu_seconds_total={"user": busy, "idle": idle}
    )


def disk(mount: str, used: int, free: int) -> DiskFact:
    return DiskFact(mount=mount, device="d", fstype="ext4", used_bytes=used, available_bytes=free)


SNAPSHOT = NodeSnapshot(
    node="n1",
    at=HOUR0,
    agent_version="1",
    host=host(100, 100),
    gpu=GpuInventory(gpus=(GpuFact(index=0, power_watts=301.0, temperature_celsius=64.0), GpuFact(index=1))),
    disk=(disk("/", 10, 90), DiskFact(mount="/hung", device="x", fstype="nfs")),
    shm=(
        ShmFact(size_bytes=8 * GIB, used_bytes=GIB, device=1),
        ShmFact(size_bytes=8 * GIB, used_bytes=2 * GIB, device=2, container_id="a"),
        ShmFact(size_bytes=8 * GIB, used_bytes=2 * GIB, device=2, container_id="b"),
    ),
)


def agent(snapshot: NodeSnapshot, silent: bool = False) -> AgentFact:
    return AgentFact(target="t", node=snapshot.node, snapshot=snapshot, silent_since=1.0 if silent else None)


Values = dict[tuple[HistorySubject, str], dict[HistoryMetric, float | None]]


def values(sampler: Sampler, view: ClusterView, *agents: AgentFact) -> Values:
    found: Values = {}
    for subject, name, figures in sampler.samples(view, agents):
        assert (subject, name) not in found
        found[subject, name] = dict(zip(METRICS[subject], figures, strict=True))
    return found


KEPT: list[tuple[HistorySubject, str, HistoryMetric, float | None]] = [
    (HistorySubject.CLUSTER, "cluster", HistoryMetric.UTILIZATION, 0.4),
    (HistorySubject.CLUSTER, "cluster", HistoryMetric.GPUS, 2),
    (HistorySubject.CLUSTER, "cluster", HistoryMetric.FREE, 5),
    (HistorySubject.CLUSTER, "cluster", HistoryMetric.WAITING, 2),
    (HistorySubject.NODE, "n1", HistoryMetric.UTILIZATION, 0.4),
    (HistorySubject.NODE, "n1", HistoryMetric.FREE, 5),
    (HistorySubject.NODE, "n1", HistoryMetric.MEMORY, 0.6),
    (HistorySubject.NODE, "n1", HistoryMetric.CPU, None),
    (HistorySubject.NODE, "n1", HistoryMetric.SHM, 3 * GIB),
    (HistorySubject.NODE, "n2", HistoryMetric.UTILIZATION, None),
    (HistorySubject.NODE, "n2", HistoryMetric.MEMORY, None),
    (HistorySubject.GPU, "n1/0", HistoryMetric.POWER, 301),
    (HistorySubject.GPU, "n1/0", HistoryMetric.TEMPERATURE, 64),
    (HistorySubject.GPU, "n1/1", HistoryMetric.POWER, None),
    (HistorySubject.GPU, "n2/0", HistoryMetric.UTILIZATION, None),
    (HistorySubject.DISK, "n1:/", HistoryMetric.USED, 0.1),
    (HistorySubject.DISK, "n1:/hung", HistoryMetric.USED, None),
    (HistorySubject.USER, "zhang", HistoryMetric.GPUS, 1),
    (HistorySubject.USER, "zhang", HistoryMetric.UTILIZATION, 0.5),
    (HistorySubject.QUEUE, "nlp", HistoryMetric.WAITING, 2),
    (HistorySubject.QUEUE, "cv", HistoryMetric.UTILIZATION, 0.0),
    (HistorySubject.JOB, "lab/bert", HistoryMetric.GPUS, 3),
    (HistorySubject.JOB, "lab/bert", HistoryMetric.UTILIZATION, 0.4),
    (HistorySubject.POD, "lab/a", HistoryMetric.GPUS, 2),
    (HistorySubject.POD, "lab/c", HistoryMetric.UTILIZATION, 0.8),
]


@pytest.mark.parametrize(("subject", "name", "metric", "expect"), KEPT)
def test_what_is_recorded(subject: HistorySubject, name: str, metric: HistoryMetric, expect: float | None) -> None:
    found = values(Sampler(), VIEW, agent(SNAPSHOT))
    assert found[subject, name][metric] == (None if expect is None else pytest.approx(expect))


def test_what_waits_or_uses_no_gpu_has_no_history() -> None:
    found = values(Sampler(), VIEW, agent(SNAPSHOT))
    assert [name for subject, name in found if subject is HistorySubject.POD] == ["lab/a", "lab/b", "lab/c"]


def test_of_a_silent_agent_nothing_is_known() -> None:
    found = values(Sampler(), VIEW, agent(SNAPSHOT, silent=True))
    assert found[HistorySubject.NODE, "n1"][HistoryMetric.MEMORY] is None
    assert (HistorySubject.DISK, "n1:/") not in found


def test_cpu_is_the_share_that_was_not_idle_since_the_last_facts() -> None:
    sampler, node = Sampler(), (HistorySubject.NODE, "n1")

    def cpu(fact: HostFact) -> float | None:
        snapshot = NodeSnapshot(node="n1", at=HOUR0, agent_version="1", host=fact)
        return values(sampler, VIEW, agent(snapshot))[node][HistoryMetric.CPU]

    first, second = host(100, 100), host(130, 110)
    assert [cpu(first), cpu(second), cpu(second)] == [None, 0.75, 0.75]
    assert cpu(host(1, 1)) is None  # it was restarted


def test_network_is_the_bytes_since_the_last_facts_over_the_time_of_a_core() -> None:
    sampler, node = Sampler(), (HistorySubject.NODE, "n1")

    def rates(seconds: float, received: int | None, sent: int | None) -> tuple[float | None, float | None]:
        fact = HostFact(
            cpus=8, memory_total_bytes=1, memory_available_bytes=1, cpu_seconds_total={"idle": 8 * seconds},
            network_received_bytes_total=received, network_transmitted_bytes_total=sent,
        )  # fmt: skip
        found = values(sampler, VIEW, agent(NodeSnapshot(node="n1", at=HOUR0, agent_version="1", host=fact)))[node]
        return found[HistoryMetric.RECEIVED], found[HistoryMetric.TRANSMITTED]

    assert rates(100, 1000, None) == (None, None)
    assert rates(110, 21_000, 500) == (2000.0, None)
    assert rates(120, 21_000, 400) == (0.0, None)  # a counter that started over


def test_disks_of_a_node_are_bounded() -> None:
    many = NodeSnapshot(
        node="n1", at=HOUR0, agent_version="1", disk=tuple(disk(f"/d{number}", 1, 9) for number in range(1000))
    )
    found = values(Sampler(), VIEW, agent(many))
    assert sum(subject is HistorySubject.DISK for subject, _ in found) == MAX_DISKS_PER_NODE
