"""`gpuwarden why` against a real API server and scheduler: the true reason in both languages.

The nodes have no kubelet.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.asker import Asker, daemon_of, settings
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.support import free_port
from tests.support.command import run


@pytest.fixture(scope="module")
def asker(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    with daemon_of(lab, tmp_path_factory.mktemp("why")) as asker:
        yield asker


@pytest.fixture
def scene(lab: Lab, asker: Asker) -> Iterator[Scene]:
    with Scene(lab, "why") as scene:
        yield scene


def wait_a_second() -> None:
    """Wait for the next second: creation timestamps have a resolution of one second."""
    time.sleep(1.05)


# Nodes


def test_no_single_node_has_enough_but_the_cluster_has(scene: Scene, asker: Asker) -> None:
    for name in ("a", "b"):
        scene.pod(f"runs-{name}", gpus=4, user="zhangsan", node=scene.node(name, gpus=8))
    scene.pod("big", gpus=8, user="lisi")
    scene.wait_refused("big")
    asker.hears(
        scene,
        "big",
        "no-single-node-fits",
        en=(
            f"{scene.name}/big is waiting for a node",
            "user lisi",
            f"No single node has 8 free GPUs (the most is 4 on {scene.name}-a), but the cluster has 8 on 2 nodes.",
            f"Free by node: {scene.name}-a (4), {scene.name}-b (4).",
            "Submit it as distributed training: 2 x 4 (2 workers with 4 GPUs each) would start now.",
            "The scheduler says: 0/",
        ),
        zh=(
            f"单机没有足够的空闲资源：需要 8 张 GPU，单个节点最多空闲 4（{scene.name}-a），",
            "但集群共空闲 8，分布在 2 个节点上。",
            "请选择“分布式训练”提交：2 x 4（2 个 worker，每个 4 张 GPU），现在就能启动。",
        ),
    )


def test_not_enough_gpus_at_all(scene: Scene, asker: Asker) -> None:
    for name, taken, user in (("a", 7, "zhangsan"), ("b", 6, "lisi")):
        scene.pod(f"runs-{name}", gpus=taken, user=user, node=scene.node(name, gpus=8))
    scene.pod("train", gpus=4)
    asker.hears(
        scene,
        "train",
        "not-enough-gpus",
        en=(
            "Not enough is free: it needs 4 GPUs, but only 3 of 16 are free on the 2 nodes it may use.",
            "Largest holders there: zhangsan (7), lisi (6).",
            "Wait, or submit the job with a smaller request.",
        ),
        zh=(
            "空闲的不够：需要 4 张 GPU；它能使用的 2 个节点共 16，空闲 3。",
            "zhangsan (7), lisi (6)",
            "减少申请量后重新提交",
        ),
    )


def test_a_taint(scene: Scene, asker: Asker) -> None:
    node = scene.node("a", gpus=8, taints=[{"key": "team", "value": "vision", "effect": "NoSchedule"}])
    for name in ("b", "c", "d"):
        scene.node(name, gpus=8, labels={"pool": "another"})
    scene.pod("train", gpus=2)
    asker.hears(
        scene,
        "train",
        "taint",
        en=(
            f"reserved by a taint that it does not tolerate (team=vision:NoSchedule): {node} (1 node).",
            "add a toleration for team=vision:NoSchedule",
        ),
        zh=(
            f"能放下它的节点都被污点预留，而它没有对应的容忍（team=vision:NoSchedule）：{node}（1 个节点）。",
            "给它加上对 team=vision:NoSchedule 的容忍",
        ),
    )


def test_a_selector_that_no_node_satisfies(scene: Scene, asker: Asker) -> None:
    label = f"{scene.name}/model"
    for name in ("a", "b"):
        scene.node(name, gpus=8, labels={label: "v100"})
    scene.pod("train", gpus=2, spec={"nodeSelector": {label: "a100"}})
    asker.hears(
        scene,
        "train",
        "selector",
        # nodes of other tests may still be there, so their number is left open
        en=(
            f"It requires {label}=a100, which none of the ",
            "sufficiently large nodes matches.",
            f"{label} = v100 (2).",
        ),
        zh=(f"它要求 {label}=a100，而容量够大的", f"节点上 {label} 的值有：v100 (2)。"),
    )


# Volumes


def test_a_volume_claim_that_does_not_exist(scene: Scene, asker: Asker) -> None:
    scene.node("a", gpus=8)
    scene.pod("train", gpus=2, spec={"volumes": [claim_volume("dataset")]})
    asker.hears(
        scene,
        "train",
        "volume",
        en=(f"The PVC dataset that it uses does not exist in {scene.name}.", "Create the PVC dataset"),
        zh=(f"它要用的存储卷声明（PVC）dataset 在 {scene.name} 里不存在。", "创建 PVC dataset"),
    )


def test_a_volume_claim_without_a_volume(scene: Scene, asker: Asker) -> None:
    scene.node("a", gpus=8)
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Ti"}}, "storageClassName": "nas"}
    scene.create_here("v1", "persistentvolumeclaims", "dataset", spec=spec)
    scene.pod("train", gpus=2, spec={"volumes": [claim_volume("dataset")]})
    asker.hears(
        scene,
        "train",
        "volume",
        en=(
            "The PVC dataset that it uses is not bound to a volume yet.",
            f"kubectl describe pvc dataset -n {scene.name}",
        ),
        zh=("它要用的存储卷声明（PVC）dataset 还没有绑定到存储卷。",),
    )


def claim_volume(name: str) -> dict[str, Any]:
    return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


# Later pods that were placed first


def test_overtaken_by_a_smaller_pod(scene: Scene, asker: Asker) -> None:
    node = scene.node("a", gpus=8)
    scene.pod("before", gpus=2, user="zhangsan", node=node)
    scene.pod("big", gpus=8, user="lisi")
    scene.wait_refused("big")
    wait_a_second()
    scene.pod("small", gpus=2, user="wangwu")
    assert scene.wait_placed("small") == node
    scene.delete("before")
    asker.hears(
        scene,
        "big",
        "overtaken",
        en=(
            f"A later pod was served first: {scene.name}/small of wangwu, submitted ",
            f"after this one, runs with 2 GPUs on {node}.",
            "Why: it requests only 2 GPUs, for which there is room; not for 8 GPUs.",
            "it needs 8 GPUs, but only 6 of 8 are free on the 1 node it may use.",
        ),
        zh=(
            f"后提交的作业先拿到了资源：wangwu 的 {scene.name}/small 比它晚",
            f"已在 {node} 上使用 2 张 GPU。",
            "原因：它只要 2 张 GPU，放得下；8 张 GPU 放不下。",
        ),
    )


def test_overtaken_by_a_pod_of_higher_priority(scene: Scene, asker: Asker) -> None:
    node = scene.node("a", gpus=8)
    scene.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": scene.name}, "value": 1000, "description": ""},
    )
    scene.pod("before", gpus=8, user="zhangsan", node=node)
    scene.pod("big", gpus=8, user="lisi")
    scene.wait_refused("big")
    wait_a_second()
    scene.pod("urgent", gpus=8, user="wangwu", spec={"priorityClassName": scene.name})
    asker.hears(
        scene,
        "urgent",
        "priority",
        en=(f"It gets its place on {node} once the lower-priority pods there have ended.",),
        zh=(f"等 {node} 上优先级较低的 Pod 结束后，它就会在那里启动。",),
    )
    scene.delete("before")
    assert scene.wait_placed("urgent") == node
    asker.hears(
        scene,
        "big",
        "overtaken",
        en=(f"{scene.name}/urgent of wangwu", "Why: its priority is higher (1000; this pod has 0)."),
        zh=(f"wangwu 的 {scene.name}/urgent", "原因：它的优先级更高（1000，本 Pod 为 0）。"),
    )


# Pods with a node


def test_a_pod_that_is_being_created(scene: Scene, asker: Asker) -> None:
    node = scene.node("a", gpus=8)
    scene.pod("train", gpus=2, user="lisi", node=node)
    asker.hears(
        scene,
        "train",
        "starting",
        en=("is being created", "user lisi", f"It has been starting on {node} for "),
        zh=("正在创建", "用户 lisi", f"正在 {node} 上启动"),
    )


def test_a_pod_that_a_finalizer_keeps(scene: Scene, asker: Asker) -> None:
    node = scene.node("a", gpus=8)
    scene.pod("train", gpus=2, node=node, metadata={"finalizers": ["example.com/checkpoint"]})
    scene.delete("train")
    asker.hears(
        scene,
        "train",
        "finalizer",
        en=(
            "is being deleted",
            "It has ended, but a finalizer keeps it: example.com/checkpoint.",
            f"Until it is gone, it keeps 2 GPUs on {node}",
        ),
        zh=(
            "正在删除",
            "它已经结束，但被 finalizer 留住：example.com/checkpoint。",
            f"在它消失之前，一直占着 {node} 上的 2 张 GPU",
        ),
    )


# With and without the daemon


def test_the_daemon_learns_of_new_and_deleted_pods(scene: Scene, asker: Asker) -> None:
    node = scene.node("a", gpus=8)
    scene.pod("quick", gpus=1, node=node)
    asker.wait(scene, "quick", "starting")
    scene.delete("quick")
    asker.wait(scene, "quick", "unknown-name")


def test_without_a_daemon_the_answer_is_the_same(lab: Lab, scene: Scene, asker: Asker, tmp_path: Path) -> None:
    for name in ("a", "b"):
        scene.pod(f"runs-{name}", gpus=4, node=scene.node(name, gpus=8))
    scene.pod(scene.name, gpus=8, user="lisi")
    scene.wait_refused(scene.name)
    asker.wait(scene, scene.name, "no-single-node-fits")
    alone = settings(lab, tmp_path, free_port())
    for lang in ("en", "zh"):
        answers = [run("why", scene.name, "--lang", lang, environ=environ) for environ in (asker.environ, alone)]
        assert [(answer.returncode, answer.stderr) for answer in answers] == [(1, "")] * 2
        asked, found_out = (answer.stdout.splitlines() for answer in answers)
        assert asked[0].startswith(f"{scene.name}/{scene.name} ")
        assert asked[1:] == found_out[1:]  # the first line contains the duration
