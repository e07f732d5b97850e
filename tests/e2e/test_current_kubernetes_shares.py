"""Shares of GPUs as HAMi, Volcano and Aliyun offer them: nodes, pods and refusals in a real cluster, in their own unit.

The nodes have no kubelet. Their shares are in the node's status, where the device plugins of these products put them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.asker import Asker, daemon_of
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.lab.layout import GPU_RESOURCE
from tests.support import wait_until
from tests.support.command import get, run

VOLCANO = {"volcano.sh/vgpu-number": "20", "volcano.sh/vgpu-memory": "48000", "volcano.sh/vgpu-cores": "200"}
ALIYUN = {"aliyun.com/gpu-mem": "48", "aliyun.com/gpu-count": "2"}
HAMI_UUID = "GPU-9a3603f4-f66e-d48b-11ea-13e327064cca"
HAMI_NODE = {"hami.io/node-nvidia-register": f"{HAMI_UUID},10,24576,100,NVIDIA-A10,0,true:"}
HAMI_POD = {"hami.io/vgpu-devices-allocated": f"{HAMI_UUID},NVIDIA,3000,30:;"}


@pytest.fixture(scope="module")
def asker(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    with daemon_of(lab, tmp_path_factory.mktemp("shares")) as asker:
        yield asker


@pytest.fixture
def scene(lab: Lab, asker: Asker) -> Iterator[Scene]:
    with Scene(lab, "shares") as scene:
        yield scene


def sharing_node(lab: Lab, scene: Scene, offers: dict[str, str], **metadata: Any) -> str:
    """A node whose device plugin offers shares of GPUs."""
    node = scene.node("a", gpus=0)
    lab.cluster.core.patch_node(node, {"metadata": metadata}, _request_timeout=60)
    body = {"status": {"capacity": offers, "allocatable": offers}}
    lab.cluster.core.patch_node_status(node, body, _request_timeout=60)
    return node


def asks(**amounts: int) -> dict[str, Any]:
    """A container that asks for amounts of resources."""
    return {"resources": {"limits": {name: str(amount) for name, amount in amounts.items()}}}


def shown(asker: Asker, path: str) -> str:
    """Text of a page, without markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", get(f"{asker.page}{path}", {"accept-language": "en"})[2]))


def status(asker: Asker) -> str:
    return re.sub(r" +", " ", run("status", environ=asker.environ).stdout)


def test_volcano_shares_are_no_gpus(lab: Lab, scene: Scene, asker: Asker) -> None:
    node = sharing_node(lab, scene, VOLCANO)
    number, memory, cores = VOLCANO
    scene.pod("runs", user="zhangsan", container=asks(**{number: 2, memory: 30000, cores: 100}))
    assert scene.wait_placed("runs") == node
    scene.pod("waits", user="lisi", container=asks(**{number: 1, memory: 24000, cores: 50}))
    assert "Insufficient volcano.sh/vgpu-memory" in scene.wait_refused("waits")
    asker.wait(scene, "waits", "vgpu")
    for lang, words in (
        ("en", "It requests 1 vGPU (24000 MiB, 50% of the cores)."),
        ("zh", "它申请了 1 个 vGPU（24000 MiB 显存，50% 算力）。"),
    ):
        told = run("why", "-n", scene.name, "waits", "--lang", lang, environ=asker.environ).stdout
        assert words in told, told
        assert not re.search(r"\b(24000|50|18000) (free )?GPUs?\b|(24000|50) 张", told), told
    page = shown(asker, f"/nodes/{node}")
    assert "2 of 20 vGPUs" in page
    assert "30000 MiB of 48000 MiB" in page
    assert f"{node} {memory} 30000 MiB of 48000 MiB of GPU memory used" in status(asker)
    assert "2 vGPUs (30000 MiB, 100% of the cores)" in shown(asker, "/users")


def test_aliyun_shares_are_gibibytes(lab: Lab, scene: Scene, asker: Asker) -> None:
    node = sharing_node(lab, scene, ALIYUN)
    scene.pod("runs", user="zhangsan", container=asks(**{"aliyun.com/gpu-mem": 40}))
    assert scene.wait_placed("runs") == node
    scene.pod("waits", user="lisi", container=asks(**{"aliyun.com/gpu-mem": 10}))
    assert "Insufficient aliyun.com/gpu-mem" in scene.wait_refused("waits")
    asker.hears(
        scene,
        "waits",
        "not-enough-gpus",
        en=("it needs 10 GiB of GPU memory, but only 8 GiB of 48 GiB", "zhangsan (40 GiB)"),
        zh=("10 GiB 显存", "zhangsan (40 GiB)"),
    )
    assert "40 GiB of 48 GiB" in shown(asker, f"/nodes/{node}")
    assert f"{node} aliyun.com/gpu-mem 40 GiB of 48 GiB of GPU memory used" in status(asker)


def test_hami_slots_are_no_gpus(lab: Lab, scene: Scene, asker: Asker) -> None:
    node = sharing_node(lab, scene, {GPU_RESOURCE: "10"}, annotations=HAMI_NODE)
    scene.pod("runs", user="zhangsan", node=node, container=asks(**{GPU_RESOURCE: 1, "nvidia.com/gpumem": 3000,
        "nvidia.com/gpucores": 30}), annotations=HAMI_POD)  # fmt: skip
    scene.pod("waits", user="lisi", container=asks(**{GPU_RESOURCE: 12, "nvidia.com/gpumem": 1000}))
    assert "Insufficient nvidia.com/gpu" in scene.wait_refused("waits")
    wait_until(lambda: "1 of 10 shared GPUs" in shown(asker, f"/nodes/{node}"), 30, "the node shares its GPUs")
    for name in ("runs", "waits"):
        told = run("why", "-n", scene.name, name, environ=asker.environ).stdout
        assert not re.search(r"\b(1|10|12|9|3000|30) (free )?GPUs?\b", told), told
    assert "1 vGPU (3000 MiB, 30% of the cores)" in shown(asker, "/users")
    assert f"{node} nvidia.com/gpu 1 of 10 shared GPUs used" in status(asker)
    assert "3000 MiB of 24576 MiB" in shown(asker, f"/nodes/{node}")
