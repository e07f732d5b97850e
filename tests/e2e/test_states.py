"""Every GPU state in a real cluster: real pods, real processes, a real kubelet; only the driver is fake.

One scene in chronological order: agent and daemon run as processes, and each test examines the daemon's view of the
next GPU.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gpu_scene import GpuScene, expect_unknown_while_stopped, free_card, gpu_scene, process_in_d
from tests.lab.lab import Lab
from tests.support import wait_until

GIB = 1 << 30


@pytest.fixture(scope="module")
def scene(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuScene]:
    with gpu_scene(lab, tmp_path_factory.mktemp("scene")) as made:
        yield made


def test_a_pod_with_two_gpus_is_busy_and_has_an_owner(scene: GpuScene) -> None:
    pod = scene.lab.run_pod("bert-0", gpus=2, labels={"userName": "li.lei"})
    scene.pods.append(pod)
    cards = scene.cards_of(pod)
    assert len(cards) == 2
    pid = scene.lab.container_pid(pod)
    for uuid in cards:
        index = scene.lab.gpu_ids.index(uuid)
        scene.nvml.process(index, pid, memory=20 * GIB)
        scene.nvml.gpu(index, util=90, memory_used=20 * GIB)
    for uuid in cards:
        wait_until(lambda uuid=uuid: pid in scene.card(uuid).pids, 20, "the process is seen")  # type: ignore[misc]  # mypy cannot infer the default
        card = scene.becomes(uuid, "busy", "held")
        (holder,) = card.holders
        assert (holder.pod, holder.user, holder.live) == ("bert-0", "li.lei", True)
        assert holder.by == ("pod-resources", "process")
        assert card.disagreements == ()
    node = scene.view().nodes[0]
    assert (node.requested, node.free, node.disagreements) == (2, 6, ())
    user = scene.view().users["li.lei"]
    assert (user.gpus, user.gpu_memory_bytes) == (2, 40 * GIB)


def test_a_host_process_is_an_orphan(scene: GpuScene) -> None:
    uuid = free_card(scene)
    with subprocess.Popen(["sleep", "600"]) as process:
        scene.nvml.process(scene.lab.gpu_ids.index(uuid), process.pid)
        scene.becomes(uuid, "orphan", "host-process")
        process.kill()
    scene.nvml.end_process(scene.lab.gpu_ids.index(uuid), process.pid)
    scene.becomes(uuid, "free")


def test_memory_without_a_process_is_a_ghost(scene: GpuScene) -> None:
    uuid = free_card(scene)
    scene.nvml.gpu(scene.lab.gpu_ids.index(uuid), memory_used=30 * GIB)
    scene.becomes(uuid, "ghost", "memory-without-process")
    scene.nvml.gpu(scene.lab.gpu_ids.index(uuid), memory_used=0)
    scene.becomes(uuid, "free")


def test_a_process_in_d_is_wedged(scene: GpuScene, tmp_path: Path) -> None:
    uuid = free_card(scene)
    index = scene.lab.gpu_ids.index(uuid)
    with process_in_d(tmp_path) as pid:
        scene.nvml.process(index, pid)
        scene.becomes(uuid, "wedged", "process-state")
    scene.nvml.end_process(index, pid)
    scene.becomes(uuid, "free")


def test_a_lost_card_is_faulty(scene: GpuScene) -> None:
    uuid = free_card(scene)
    scene.nvml.lose(scene.lab.gpu_ids.index(uuid))
    scene.becomes(uuid, "faulty", "gpu-lost")
    scene.nvml.find(scene.lab.gpu_ids.index(uuid))
    scene.becomes(uuid, "free", limit=90)  # a driver session with a lost GPU restarts once a minute


def test_a_deleted_pod_whose_process_lives_on_is_a_zombie_and_its_idle_sister_a_phantom(scene: GpuScene) -> None:
    """The kubelet is down: containers of deleted pods keep running and their devices stay allocated."""
    sister = scene.lab.run_pod("sister", gpus=1)
    scene.pods.append(sister)
    (idle,) = scene.cards_of(sister)
    bert = scene.pods[0]
    cards = scene.cards_of(bert)
    scene.lab.kill_component("kubelet")
    # The kubelet's socket is stale; its checkpoint files remain.
    (scene.lab.kubelet_root / "pod-resources" / "kubelet.sock").unlink(missing_ok=True)
    for pod in (bert, sister):
        scene.lab.cluster.core.delete_namespaced_pod(
            pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0, _request_timeout=60
        )
    for uuid in cards:
        card = scene.becomes(uuid, "zombie", "pod-deleted")
        assert card.pids
    phantom = scene.becomes(idle, "phantom", "stale-allocation")
    assert [holder.by for holder in phantom.holders] == [("checkpoint",)]
    assert phantom.disagreements == ("allocation-of-missing-pod",)


def test_a_stopped_agent_leaves_its_cards_unknown(scene: GpuScene) -> None:
    expect_unknown_while_stopped(scene)
