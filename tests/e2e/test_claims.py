"""GPUs that ResourceClaims hold, in a real cluster: every state a claim can lead to, others beside them, and `why`.

One scene in chronological order. The lab's device plugin offers the same GPUs as its DRA driver; pods only use claims.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from kubernetes import client

from tests.e2e.gpu_scene import GpuScene, expect_unknown_while_stopped, free_card, gpu_scene, process_in_d
from tests.lab.lab import Lab
from tests.lab.modern.claims import claiming, resource_claim
from tests.support import wait_until
from tests.support.command import get

pytestmark = pytest.mark.lab("1.35")
GIB = 1 << 30


class ClaimScene:
    """A scene with a DRA driver."""

    def __init__(self, scene: GpuScene, resources: Any) -> None:
        self.gpus = scene
        self.resources = resources
        self.claims: list[str] = []

    def claim(self, name: str, gpus: int, **selecting: Any) -> str:
        manifest = resource_claim(name, gpus=gpus)
        manifest["spec"]["devices"]["requests"][0]["exactly"] |= selecting
        self.resources.create_namespaced_resource_claim("default", manifest)
        self.claims.append(name)
        return name

    def run(self, name: str, claim: str, phase: str | None = "Running") -> Any:
        pod = self.gpus.lab.run_pod(name, phase=phase, labels={"userName": "li.lei"}, **claiming(claim))
        self.gpus.pods.append(pod)
        return pod

    def allocated(self, claim: str) -> list[str]:
        """UUIDs of the GPUs of an allocated claim."""
        status = self.resources.read_namespaced_resource_claim(claim, "default").status
        names = [each.device for each in status.allocation.devices.results]
        return [self.gpus.lab.gpu_ids[int(name.removeprefix("gpu-"))] for name in names]

    def why(self, name: str, cause: str, *words: str) -> None:
        """Wait until the daemon explains a pod by the cause in these words."""
        query = urlencode({"name": name, "namespace": "default", "lang": "en"})

        def answer() -> dict[str, Any]:
            explained: dict[str, Any] = json.loads(get(f"{self.gpus.page}/v1/why?{query}")[2])
            return explained

        def expected() -> bool:
            said = answer()
            return said["cause"] == cause and all(word in "\n".join(said["lines"]) for word in words)

        wait_until(expected, 60, f"{name} is explained by {cause} and {words}, not {answer()}")

    def end(self, *pods: Any) -> None:
        self.gpus.lab.delete_pods(*pods)
        for pod in pods:
            self.gpus.pods.remove(pod)


@pytest.fixture(scope="module")
def scene(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaimScene]:
    lab.start_component("dra-driver")
    resources = client.ResourceV1Api(lab.cluster.api)
    with gpu_scene(lab, tmp_path_factory.mktemp("scene"), idle_after="3s") as gpus:
        made = ClaimScene(gpus, resources)
        yield made
    for name in made.claims:
        resources.delete_namespaced_resource_claim(name, "default")
    lab.stop_component("dra-driver")


def test_gpus_that_device_plugin_and_dra_driver_offer_count_once(scene: ClaimScene) -> None:
    node = scene.gpus.view().nodes[0]
    assert (node.capacity, node.allocatable, node.free, node.disagreements) == (8, 8, 8, ())


def test_claimed_gpus_are_busy_and_have_an_owner(scene: ClaimScene) -> None:
    pod = scene.run("bert-0", scene.claim("two", 2))
    cards = scene.allocated("two")
    pid = scene.gpus.lab.container_pid(pod)
    for uuid in cards:
        index = scene.gpus.lab.gpu_ids.index(uuid)
        scene.gpus.nvml.process(index, pid, memory=20 * GIB)
        scene.gpus.nvml.gpu(index, util=90, memory_used=20 * GIB)
    for uuid in cards:
        wait_until(lambda uuid=uuid: pid in scene.gpus.card(uuid).pids, 20, "the process is seen")  # type: ignore[misc]  # mypy cannot infer the default
        card = scene.gpus.becomes(uuid, "busy", "held")
        wait_until(
            lambda uuid=uuid: scene.gpus.card(uuid).holders[0].by == ("pod-resources", "process", "resource-claim"),  # type: ignore[misc]  # likewise
            20,
            "kubelet, driver and API server name the holder",
        )
        (holder,) = card.holders
        assert (holder.pod, holder.user, holder.live) == ("bert-0", "li.lei", True)
        assert card.disagreements == ()
    wait_until(lambda: scene.gpus.view().nodes[0].requested == 2, 20, "the claim counts as requested")
    node = scene.gpus.view().nodes[0]
    assert (node.free, node.disagreements) == (6, ())
    assert scene.gpus.view().users["li.lei"].gpus == 2


def test_a_claimed_gpu_without_load_is_idle(scene: ClaimScene) -> None:
    uuid = scene.allocated("two")[0]
    index = scene.gpus.lab.gpu_ids.index(uuid)
    scene.gpus.nvml.gpu(index, util=0)
    card = scene.gpus.becomes(uuid, "idle-held", "idle")
    assert [holder.pod for holder in card.holders] == ["bert-0"]
    scene.gpus.nvml.gpu(index, util=90)
    scene.gpus.becomes(uuid, "busy", "held")


def test_memory_of_a_claimed_gpu_without_a_process_is_a_ghost(scene: ClaimScene) -> None:
    uuid = scene.allocated("two")[0]
    index, pid = scene.gpus.lab.gpu_ids.index(uuid), scene.gpus.lab.container_pid(scene.gpus.pods[0])
    scene.gpus.nvml.end_process(index, pid)
    card = scene.gpus.becomes(uuid, "ghost", "memory-without-process")
    assert [holder.pod for holder in card.holders] == ["bert-0"]
    scene.gpus.nvml.process(index, pid, memory=20 * GIB)
    scene.gpus.becomes(uuid, "busy")


def test_a_process_in_d_on_a_claimed_gpu_is_wedged(scene: ClaimScene, tmp_path: Path) -> None:
    uuid = scene.allocated("two")[0]
    index = scene.gpus.lab.gpu_ids.index(uuid)
    with process_in_d(tmp_path) as pid:
        scene.gpus.nvml.process(index, pid)
        scene.gpus.becomes(uuid, "wedged", "process-state")
    scene.gpus.nvml.end_process(index, pid)
    scene.gpus.becomes(uuid, "busy")


def test_claimed_gpus_of_a_stopped_agent_are_unknown(scene: ClaimScene) -> None:
    expect_unknown_while_stopped(scene.gpus)
    for uuid in scene.allocated("two"):
        scene.gpus.becomes(uuid, "busy", "held")


def test_an_orphan_and_a_ghost_beside_claimed_gpus(scene: ClaimScene) -> None:
    uuid = free_card(scene.gpus)
    index = scene.gpus.lab.gpu_ids.index(uuid)
    with subprocess.Popen(["sleep", "600"]) as process:
        scene.gpus.nvml.process(index, process.pid)
        scene.gpus.becomes(uuid, "orphan", "host-process")
        process.kill()
    scene.gpus.nvml.end_process(index, process.pid)
    scene.gpus.becomes(uuid, "free")
    scene.gpus.nvml.gpu(index, memory_used=30 * GIB)
    scene.gpus.becomes(uuid, "ghost", "memory-without-process")
    scene.gpus.nvml.gpu(index, memory_used=0)
    scene.gpus.becomes(uuid, "free")


def test_a_foreign_process_on_a_claimed_gpu_makes_it_an_orphan(scene: ClaimScene) -> None:
    uuid = scene.allocated("two")[0]
    with subprocess.Popen(["sleep", "600"]) as process:
        scene.gpus.nvml.process(scene.gpus.lab.gpu_ids.index(uuid), process.pid)
        scene.gpus.becomes(uuid, "orphan", "host-process")
        process.kill()
    scene.gpus.nvml.end_process(scene.gpus.lab.gpu_ids.index(uuid), process.pid)
    scene.gpus.becomes(uuid, "busy")


def test_a_lost_gpu_of_a_claim_is_faulty(scene: ClaimScene) -> None:
    uuid = scene.allocated("two")[0]
    scene.gpus.nvml.lose(scene.gpus.lab.gpu_ids.index(uuid))
    card = scene.gpus.becomes(uuid, "faulty", "gpu-lost")
    assert [holder.pod for holder in card.holders] == ["bert-0"]
    scene.gpus.nvml.find(scene.gpus.lab.gpu_ids.index(uuid))
    scene.gpus.becomes(uuid, "busy", limit=90)  # a driver session with a lost GPU restarts once a minute


def test_pods_that_share_a_claim_hold_one_gpu_together(scene: ClaimScene) -> None:
    scene.claim("shared", 1)
    pods = [scene.run(name, "shared") for name in ("left", "right")]
    (uuid,) = scene.allocated("shared")
    wait_until(
        lambda: {holder.pod for holder in scene.gpus.card(uuid).holders} == {"left", "right"}, 30, "both hold it"
    )
    wait_until(lambda: scene.gpus.view().nodes[0].requested == 3, 20, "it counts once")
    assert scene.gpus.view().nodes[0].free == 5
    scene.end(*pods)
    scene.gpus.becomes(uuid, "free")


def test_why_pods_wait_for_claims(scene: ClaimScene) -> None:
    waiting = [
        scene.run("too-many", scene.claim("nine", 9), None),
        scene.run("taken", scene.claim("seven", 7), None),
        scene.run("absent", "nowhere", None),
        scene.run("unknown-class", scene.claim("other", 1, deviceClassName="h200"), None),
        scene.run("picky", scene.claim("big", 1, selectors=[selector()]), None),
        scene.gpus.lab.run_pod(
            "untemplated",
            phase=None,
            container={"resources": {"claims": [{"name": "gpus"}]}},
            spec={"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "no-such-template"}]},
        ),
    ]
    scene.gpus.pods.append(waiting[-1])
    scene.why("too-many", "device-claim", "asks for 9 devices of class gpu.nvidia.com", "no node has more than 8")
    scene.why("taken", "device-claim", "needs 7 of the 8 devices", "default/bert-0 (2)")
    scene.why("absent", "device-claim", "ResourceClaim nowhere does not exist")
    scene.why("unknown-class", "device-claim", "DeviceClass h200")
    scene.why("picky", "device-claim", "productName == 'H300'")
    scene.why("untemplated", "device-claim", "ResourceClaimTemplate no-such-template does not exist")
    scene.end(*waiting)


def selector() -> dict[str, Any]:
    return {"cel": {"expression": "device.attributes['gpu.nvidia.com'].productName == 'H300'"}}


def test_why_a_pod_does_not_start_without_its_driver(scene: ClaimScene) -> None:
    """A driver that was killed leaves its devices published, so that the scheduler still allocates them."""
    scene.gpus.lab.kill_component("dra-driver")
    pod = scene.run("unprepared", scene.claim("one", 1), None)
    scene.why("unprepared", "start-dra-prepare", "DRA driver gpu.nvidia.com")
    scene.gpus.lab.start_component("dra-driver")
    wait_until(
        lambda: scene.gpus.lab.cluster.core.read_namespaced_pod("unprepared", "default").status.phase == "Running",
        180,
        "the pod runs once its driver is back",
    )
    scene.end(pod)


def test_a_gpu_whose_claim_is_not_released_is_a_phantom(scene: ClaimScene) -> None:
    """The controller manager is down: it would release the claim of the deleted pod."""
    pod = scene.run("unreleased", scene.claim("kept", 1))
    (uuid,) = scene.allocated("kept")
    wait_until(lambda: scene.gpus.card(uuid).holders, 30, "the pod holds it")
    # The agent names the holder; that its claim counts comes from the API server, perhaps a moment later.
    wait_until(lambda: scene.gpus.view().nodes[0].free == 5, 30, "no other pod can get it")
    scene.gpus.lab.kill_component("controller-manager")
    try:
        scene.end(pod)
        scene.gpus.becomes(uuid, "phantom", "stale-allocation", limit=120)
        wait_until(lambda: scene.gpus.card(uuid).holders[0].by == ("resource-claim",), 60, "only the claim is left")
        (holder,) = scene.gpus.card(uuid).holders
        assert (holder.pod, holder.live) == ("unreleased", False)
        assert scene.gpus.view().nodes[0].free == 5, "no other pod can get it"
    finally:
        scene.gpus.lab.start_component("controller-manager")
    scene.gpus.becomes(uuid, "free", limit=120)
    wait_until(lambda: scene.gpus.view().nodes[0].free == 6, 30, "others can get it again")


def test_a_deleted_pod_whose_process_lives_on_is_a_zombie(scene: ClaimScene) -> None:
    """The kubelet is down: the container keeps running, and the claim is released."""
    bert, cards = scene.gpus.pods[0], scene.allocated("two")
    scene.gpus.lab.kill_component("kubelet")
    (scene.gpus.lab.kubelet_root / "pod-resources" / "kubelet.sock").unlink(missing_ok=True)
    scene.gpus.lab.cluster.core.delete_namespaced_pod(
        bert.metadata.name, bert.metadata.namespace, grace_period_seconds=0, _request_timeout=60
    )
    for uuid in cards:
        assert scene.gpus.becomes(uuid, "zombie", "pod-deleted").pids
