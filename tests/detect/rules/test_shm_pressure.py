from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from monitor.detect.rules.shm_pressure import RULE
from monitor.facts.cluster import Identity
from monitor.facts.gpu import GpuProcessFact, PodDeviceFact
from monitor.facts.workload import ShmFact
from tests.detect.builders_storage import GIB, MIB, Watch, agent, brief, container, once, silent, text

HOST = ShmFact(size_bytes=64 * GIB, used_bytes=0, device=1)
DEVICE = PodDeviceFact(
    resource="nvidia.com/gpu", device_id="GPU-0", source="pod-resources", pod_uid="uid-bert-0", gpu_uuid="GPU-0"
)


def shm(used: float, size: float, device: int = 7, of: str = "train") -> ShmFact:
    """Shared memory, in MiB."""
    return ShmFact(size_bytes=round(size * MIB), used_bytes=round(used * MIB), device=device, container_id=f"id-{of}")


def process(pid: int) -> GpuProcessFact:
    return GpuProcessFact(gpu_uuid="GPU-0", pid=pid, kind="compute", pod_uid="uid-bert-0", container_id="id-train")


@dataclass(frozen=True)
class Case:
    name: str
    shm: ShmFact
    expect: tuple[str, str] | None
    parts: dict[str, Any] = field(default_factory=dict)


GPU: dict[str, Any] = {"pod_devices": (DEVICE,)}


@pytest.mark.parametrize(
    "case",
    [
        Case("just below", shm(849, 1000), None, GPU),
        Case("nearly full", shm(850, 1000), ("warning", "nearly-full")),
        Case("full", shm(990, 1000), ("critical", "nearly-full")),
        Case("the default, in use", shm(1, 64), ("warning", "default-size"), GPU),
        Case("the default, nearly full", shm(60, 64), ("warning", "nearly-full"), GPU),
        Case("the default, unused, one process", shm(0, 64), None, GPU | {"gpu_processes": (process(1),)}),
        Case(
            "the default, several processes", shm(0, 64), ("warning", "default-size"),
            GPU | {"gpu_processes": (process(1), process(2))},
        ),
        Case("the default, of a pod without GPUs", shm(1, 64), None),
        Case("more than the default", shm(1, 65), None, GPU),
    ],
    ids=lambda case: case.name,
)  # fmt: skip
def test_one_container(case: Case) -> None:
    found = once(RULE, agent("n1", shm=(HOST, case.shm), containers=(container(),), **case.parts))
    assert [(f.severity.value, f.cause) for f in found] == ([case.expect] if case.expect else [])
    for finding in found:
        assert finding.labels == {"node": "n1", "pod": "bert-0", "namespace": "team", "user": "alice"}


def test_it_says_what_to_set_in_both_languages() -> None:
    full, small = shm(15_000, 16_384), shm(1, 64)
    found = once(RULE, agent("n1", shm=(full,), containers=(container(),)))[0]
    assert "team/bert-0 on n1 is 92% full (14.6 GiB of 16 GiB)" in text(found)
    assert "sizeLimit: 32Gi" in text(found)
    assert "sizeLimit: 32Gi" in text(found, "zh")
    assert "bus error" in text(found, "zh")
    found = once(RULE, agent("n1", shm=(small,), containers=(container(),), **GPU))[0]
    assert "only the default 64 MiB of shared memory" in text(found)
    assert "sizeLimit: 8Gi" in text(found)
    assert "默认的 64 MiB" in text(found, "zh")


def test_containers_of_a_pod_share_one() -> None:
    two = (container("a"), container("b"))
    found = once(RULE, agent("n1", shm=(shm(90, 100, 7, "a"), shm(90, 100, 7, "b")), containers=two))
    assert len(found) == 1


def test_a_pod_in_the_hosts_ipc_does_not_answer_for_the_host() -> None:
    host = ShmFact(size_bytes=100, used_bytes=99, device=1)
    assert once(RULE, agent("n1", shm=(host, shm(99, 100, device=1)), containers=(container(),), **GPU)) == []


def test_a_container_without_a_pod_has_its_own_name() -> None:
    plain = container("notebook", pod=None, user=None)
    found = once(RULE, agent("n1", shm=(shm(90, 100, of="notebook"),), containers=(plain,)))
    assert found[0].labels == {"node": "n1", "container": "notebook"}
    assert "It belongs to" not in text(found[0])


def test_the_owner_is_the_one_that_the_platform_names() -> None:
    given = agent("n1", shm=(shm(90, 100),), containers=(container(user=None),))
    found = once(RULE, given, identities={"uid-bert-0": Identity(user="bob", job="bert", queue="nlp")})
    assert found[0].labels == {
        "node": "n1", "pod": "bert-0", "namespace": "team", "user": "bob", "job": "bert", "queue": "nlp",
    }  # fmt: skip


def test_held_while_silent() -> None:
    watch = Watch(RULE)
    watch.see(agent("n1", shm=(shm(90, 100),), containers=(container(),)))
    assert brief(watch.see(silent())) == [("warning", "nearly-full", True)]
    assert brief(watch.see(agent("n1", containers=(container(),)))) == [("warning", "nearly-full", True)]
    assert watch.see(agent("n1", shm=(shm(10, 100),), containers=(container(),))) == []
