"""What a current scheduler says about volumes: the true reason, on nodes without a kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.asker import Asker, daemon_of
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.support import wait_until

pytestmark = pytest.mark.lab("1.35")
SIZE = {"storage": "1Gi"}
MODES = ["ReadWriteOnce"]


@pytest.fixture(scope="module")
def asker(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    with daemon_of(lab, tmp_path_factory.mktemp("current")) as asker:
        yield asker


@pytest.fixture
def scene(lab: Lab, asker: Asker) -> Iterator[Scene]:
    with Scene(lab, "current") as scene:
        yield scene


def claim(scene: Scene, storage_class: str, **spec: Any) -> dict[str, Any]:
    """Create a PVC, and return a volume that uses it."""
    wanted = {"accessModes": MODES, "resources": {"requests": SIZE}, "storageClassName": storage_class, **spec}
    scene.create_here("v1", "persistentvolumeclaims", "dataset", spec=wanted)
    return {"name": "data", "persistentVolumeClaim": {"claimName": "dataset"}}


def test_a_claim_that_is_not_bound_is_not_called_missing(scene: Scene, asker: Asker) -> None:
    scene.node("a", gpus=8)
    scene.pod("train", gpus=2, spec={"volumes": [claim(scene, "nas")]})
    assert "pod has unbound immediate PersistentVolumeClaims" in scene.wait_refused("train")
    asker.hears(
        scene,
        "train",
        "volume",
        en=("The PVC dataset that it uses is not bound to a volume yet.",),
        zh=("它要用的存储卷声明（PVC）dataset 还没有绑定到存储卷。",),
    )


def test_a_volume_of_a_node_without_room_is_not_called_a_label(scene: Scene, asker: Asker) -> None:
    """The volume is a disk of node a, whose GPUs are in use; node b has room."""
    full = scene.node("a", gpus=8)
    free = scene.node("b", gpus=8)
    scene.pod("runs", gpus=8, user="zhangsan", node=full)
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [full]}
    volume = {
        "capacity": SIZE,
        "accessModes": MODES,
        "storageClassName": scene.name,
        "claimRef": {"namespace": scene.name, "name": "dataset"},
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    scene.create("/api/v1/persistentvolumes", {"metadata": {"name": scene.name}, "spec": volume})
    volumes = [claim(scene, scene.name, volumeName=scene.name)]
    path = scene.path("v1", "persistentvolumeclaims", "dataset")
    wait_until(lambda: scene.api.get(path)["status"].get("phase") == "Bound", 30, "the claim is bound")
    scene.pod("train", gpus=2, user="lisi", spec={"volumes": volumes})
    assert "didn't match PersistentVolume's node affinity" in scene.wait_refused("train")
    asker.hears(
        scene,
        "train",
        "volume",
        en=("Its volume is not available on the nodes that have room (volume node affinity).",),
        zh=("存储卷",),
    )
    assert scene.read("train")["spec"].get("nodeName") is None, f"{free} has room, but not the volume"
