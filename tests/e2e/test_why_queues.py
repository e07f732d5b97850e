"""`gpuwarden why` for pods held back by quotas and queues: the true reason in both languages.

API server, controllers and quota are real. Objects of Volcano and Kueue are written as their controllers would write
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.add_ons import GPU, KUEUE, VOLCANO, add_ons
from tests.e2e.asker import Asker, daemon_of
from tests.e2e.scenes import Scene
from tests.lab.lab import Lab
from tests.support import wait_until


@pytest.fixture(scope="module")
def asker(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A daemon started after Volcano and Kueue were installed."""
    more = ("queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh", "workloads.kueue.x-k8s.io")
    with add_ons(lab), daemon_of(lab, tmp_path_factory.mktemp("why"), *more) as asker:
        yield asker


@pytest.fixture
def scene(lab: Lab, asker: Asker) -> Iterator[Scene]:
    with Scene(lab, "why") as scene:
        yield scene


@pytest.mark.parametrize(
    ("version", "plural", "kind", "spec"),
    [("batch/v1", "jobs", "Job", {}), ("apps/v1", "deployments", "ReplicaSet", {"replicas": 1})],
)
def test_a_quota_that_is_used_up(
    scene: Scene, asker: Asker, version: str, plural: str, kind: str, spec: dict[str, Any]
) -> None:
    scene.pod("runs", gpus=4, user="zhangsan", node=scene.node("a", gpus=8))
    scene.create_here("v1", "resourcequotas", "gpus", spec={"hard": {f"requests.{GPU}": "6"}})
    quota = scene.path("v1", "resourcequotas", "gpus")
    wait_until(lambda: scene.api.get(quota)["status"].get("used"), 10, "the quota is counted")
    scene.create_here(version, plural, "sweep", spec=spec | workers(plural, gpus=8))
    asker.hears(
        scene,
        "sweep",
        "quota",
        en=(
            f"{scene.name}/sweep has no pods",
            f"quota gpus is used up: requests.{GPU} is limited to 6, 4 are in use, the job needs 8 more.",
            f"Quota gpus right now: 4 of 6 requests.{GPU} in use.",
            f"Largest holders in {scene.name}: zhangsan (4).",
            f"Its controller ({kind}) tried ",
        ),
        zh=(
            f"命名空间配额 gpus 已用完：requests.{GPU} 上限 6，已用 4，作业还需要 8。",
            "zhangsan (4)",
            "请管理员提高配额 gpus",
        ),
    )


def workers(plural: str, gpus: int) -> dict[str, Any]:
    main = {"name": "main", "image": "x", "resources": {"limits": {GPU: str(gpus)}}}
    restart = {"restartPolicy": "Never"} if plural == "jobs" else {}
    template = {"metadata": {"labels": {"app": "sweep"}}, "spec": {"containers": [main], **restart}}
    selector = {} if plural == "jobs" else {"selector": {"matchLabels": {"app": "sweep"}}}
    return {"template": template, **selector}


def test_a_name_that_nothing_has(scene: Scene, asker: Asker) -> None:
    asker.hears(
        scene,
        "nosuch",
        "unknown-name",
        en=(f"No pod, job or user named nosuch is known (namespace {scene.name}).",),
        zh=(f"没有找到名为 nosuch 的 Pod、作业或用户（命名空间 {scene.name}）。",),
    )


def volcano_queue(scene: Scene, state: str) -> str:
    name = f"{scene.name}-vision"
    queue = {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}
    scene.create(f"/apis/{VOLCANO}/queues", {**queue, "status": {"state": state}})
    return name


def volcano_pod(scene: Scene, group: str, name: str, gpus: int) -> None:
    """A pod that names its group but not its queue, as PyTorchJobs under Volcano do."""
    group_name = {"scheduling.k8s.io/group-name": group}
    scene.pod(name, gpus=gpus, annotations=group_name, spec={"schedulerName": "volcano"})


def test_a_volcano_queue_that_is_closed(scene: Scene, asker: Asker) -> None:
    scene.node("a", gpus=8)
    queue = volcano_queue(scene, "Closed")
    scene.create_here(
        VOLCANO, "podgroups", "nlp", kind="PodGroup", spec={"minMember": 1, "queue": queue}, status={"phase": "Pending"}
    )
    volcano_pod(scene, "nlp", "nlp-0", gpus=2)
    asker.hears(
        scene,
        "nlp-0",
        "queue-closed",
        en=(
            f", queue {queue}\n",
            f"Its queue {queue} is closed: no new job starts there.",
            f"vcctl queue operate -n {queue} -a open",
        ),
        zh=(f"，队列 {queue}\n", f"所在队列 {queue} 的状态是 closed：不再启动新作业。", "把作业提交到其他队列"),
    )


def test_a_volcano_group_that_is_not_complete(scene: Scene, asker: Asker) -> None:
    scene.node("a", gpus=8)
    words = "2/4 tasks in gang unschedulable: pod group is not ready, 2 Pending, 4 minAvailable"
    scene.create_here(
        VOLCANO,
        "podgroups",
        "bert",
        kind="PodGroup",
        spec={"minMember": 4, "queue": volcano_queue(scene, "Open")},
        status={"phase": "Pending", "conditions": [{"type": "Unschedulable", "status": "True", "message": words}]},
    )
    for number in range(2):
        volcano_pod(scene, "bert", f"bert-{number}", gpus=1)
    asker.hears(
        scene,
        "bert-1",
        "gang-incomplete",
        en=("Its group bert starts all together or not at all: 4 pods are required, 2 exist, 2 are missing.", words),
        zh=("作业组 bert 必须整组一起启动：需要 4 个 Pod，现有 2 个，还缺 2 个。", words),
    )


def kueue_queues(scene: Scene) -> str:
    """Create a LocalQueue `train` and its ClusterQueue of 8 GPUs, 6 of them reserved; return its name."""
    name = f"{scene.name}-a100"
    flavor = {"name": "a100", "resources": [{"name": GPU, "nominalQuota": "8"}]}
    books = [{"name": "a100", "resources": [{"name": GPU, "total": "6"}]}]
    queue = {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {"resourceGroups": [{"coveredResources": [GPU], "flavors": [flavor]}]},
        "status": {"flavorsReservation": books, "conditions": [{"type": "Active", "status": "True"}]},
    }
    scene.create(f"/apis/{KUEUE}/clusterqueues", queue)
    scene.create_here(KUEUE, "localqueues", "train", kind="LocalQueue", spec={"clusterQueue": name})
    return name


@pytest.mark.parametrize("owner", ["Job", "Pod"])
def test_a_kueue_workload_without_quota(scene: Scene, asker: Asker, owner: str) -> None:
    """Kubernetes 1.20 has neither suspended Jobs nor scheduling gates:

    a Job without pods, and a pod that no scheduler handles.
    """
    scene.node("a", gpus=8)
    queue = kueue_queues(scene)
    labels = {"kueue.x-k8s.io/queue-name": "train"}
    if owner == "Job":
        spec = {"parallelism": 0, **workers("jobs", gpus=4)}
        made = scene.create_here("batch/v1", "jobs", "resnet", metadata={"labels": labels}, spec=spec)
    else:
        made = scene.pod("resnet", gpus=4, labels=labels, spec={"schedulerName": "after-kueue"})
    version = "batch/v1" if owner == "Job" else "v1"
    reference = {"apiVersion": version, "kind": owner, "name": "resnet", "uid": made["metadata"]["uid"]}
    words = (
        f"couldn't assign flavors to pod set main: insufficient unused quota for {GPU} in flavor a100, 2 more needed"
    )
    pod_set = {"name": "main", "count": 1, "template": workers("jobs", gpus=4)["template"]}
    scene.create_here(
        KUEUE,
        "workloads",
        f"{owner.lower()}-resnet-1a2b3",
        kind="Workload",
        metadata={"ownerReferences": [{**reference, "controller": True}]},
        spec={"queueName": "train", "active": True, "podSets": [pod_set]},
        status={"conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": words}]},
    )
    asker.hears(
        scene,
        "resnet",
        "quota",
        en=(
            f"It waits in queue train: the quota of {queue} for {GPU} (flavor a100) is used up, 2 more needed.",
            f"{queue} has 8 of {GPU}, 6 are reserved; this job needs 4.",
        ),
        zh=(
            f"它在队列 train 中排队：{queue} 的 {GPU} 配额（flavor a100）已用完，还差 2。",
            f"{queue} 共有 8 个 {GPU}，已预留 6 个；这个作业需要 4 个。",
        ),
    )
