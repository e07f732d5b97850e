"""`gpuwarden why` against a real API server, scheduler and controllers: the true reason, in both languages.

Nodes are objects without a kubelet. Volcano's and Kueue's objects are written as their controllers would: what is
tested is what we make of them.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.e2e.scenes import KUEUE, VOLCANO, Scene, add_ons
from tests.lab.lab import Lab
from tests.support import wait_until
from tests.support.command import STOP_LIMIT, command, get, quiet_environment, run, running

GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Asker:
    """Somebody at a command line. `page` is where the daemon answers."""

    page: str
    environ: dict[str, str]

    def wait(self, scene: Scene, name: str, cause: str) -> float:
        """Wait until the daemon takes this for the cause, and return how many seconds that took."""
        began = time.monotonic()
        query = urlencode({"name": name, "namespace": scene.name, "lang": "en"})
        while (answer := json.loads(get(f"{self.page}/v1/why?{query}")[2]))["cause"] != cause:
            assert time.monotonic() < began + 10, f"not {cause}: {answer}"
            time.sleep(0.02)
        return time.monotonic() - began

    def hears(self, scene: Scene, name: str, cause: str, en: Sequence[str], zh: Sequence[str]) -> None:
        """Wait until the daemon has understood, and expect these words of the command in both languages."""
        self.wait(scene, name, cause)
        for lang, words in (("en", en), ("zh", zh)):
            answer = run("why", "-n", scene.name, name, "--lang", lang, environ=self.environ)
            assert (answer.returncode, answer.stderr) == (1, "")
            missing = [word for word in words if word not in answer.stdout]
            assert not missing, f"{missing} not in\n{answer.stdout}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def settings(lab: Lab, state: Path, port: int) -> dict[str, str]:
    return quiet_environment(
        state,
        DAEMON__LISTEN=f"127.0.0.1:{port}",
        DAEMON__KUBERNETES__ENABLED="yes",
        DAEMON__KUBERNETES__KUBECONFIG=str(lab.kubeconfig),
        DAEMON__CYCLE="500ms",
    )


@pytest.fixture(scope="module")
def asker(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A daemon that follows the lab, started when Volcano and Kueue are there already."""
    port = free_port()
    environ = settings(lab, tmp_path_factory.mktemp("why"), port)
    asker = Asker(f"http://127.0.0.1:{port}", environ)
    with add_ons(lab), running(command("daemon"), environ, stdout=subprocess.DEVNULL) as daemon:
        wait_until(lambda: follows_everything(asker.page), 20, "the daemon follows the cluster")
        yield asker
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(STOP_LIMIT) == 0


def follows_everything(page: str) -> bool:
    try:
        view = json.loads(get(f"{page}/v1/view")[2])
    except OSError:
        return False
    ok = {source["name"] for source in view["sources"] if source["ok"]}
    return {"pods", "nodes", "events", "queues.scheduling.volcano.sh", "workloads.kueue.x-k8s.io"} <= ok


@pytest.fixture
def scene(lab: Lab, asker: Asker) -> Iterator[Scene]:
    with Scene(lab, "why") as scene:
        yield scene


def wait_a_second() -> None:
    """Let the next object have a later time of creation: the API server counts in whole seconds."""
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
            f"{scene.name}/big waits for a node",
            "user lisi",
            f"No single node has 8 free GPUs (the most is 4 on {scene.name}-a), but the cluster has 8 on 2 nodes.",
            f"Free GPUs by node: {scene.name}-a (4), {scene.name}-b (4).",
            "Submit it as distributed training: 2 x 4 (2 workers with 4 GPUs each) would start now.",
            f"The scheduler says: 0/{len(scene.api.get('/api/v1/nodes')['items'])} nodes are available",
        ),
        zh=(
            f"单机没有足够的空闲GPU：需要 8 张，单个节点最多空闲 4 张（{scene.name}-a），但集群共有 8 张空闲GPU，"
            "分布在 2 个节点上。",
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
            "Not enough free GPUs: it needs 4, and 3 of 16 are free on the 2 nodes it may use.",
            "held by: zhangsan (7), lisi (6).",
            "Wait, or submit the job with fewer GPUs.",
        ),
        zh=(
            "空闲GPU不够：需要 4 张；它能使用的 2 个节点共 16 张，空闲 3 张。",
            "zhangsan (7), lisi (6)",
            "减少GPU数量后重新提交",
        ),
    )


def test_a_taint(scene: Scene, asker: Asker) -> None:
    node = scene.node("a", gpus=8, taints=[{"key": "team", "value": "vision", "effect": "NoSchedule"}])
    for name in ("b", "c", "d"):
        scene.node(name, gpus=8, pool="another")
    scene.pod("train", gpus=2)
    asker.hears(
        scene,
        "train",
        "taint",
        en=(
            f"reserved by a taint which it does not tolerate (team=vision:NoSchedule): {node} (1 node).",
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
        scene.node(name, gpus=8, **{label: "v100"})
    scene.pod("train", gpus=2, spec={"nodeSelector": {label: "a100"}})
    asker.hears(
        scene,
        "train",
        "selector",
        en=(f"It wants {label}=a100, and none of the nodes that are large enough has that", f"{label} = v100 (2)."),
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
        en=(f"The volume claim dataset that it uses does not exist in {scene.name}.", "Create the claim dataset"),
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
            "The volume claim dataset that it uses has no volume yet.",
            f"kubectl describe pvc dataset -n {scene.name}",
        ),
        zh=("它要用的存储卷声明（PVC）dataset 还没有绑定到存储卷。",),
    )


def claim_volume(name: str) -> dict[str, Any]:
    return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


# Pods that are not created


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
            f"Most GPUs in {scene.name} are held by: zhangsan (4).",
            f"by its controller ({kind}).",
        ),
        zh=(
            f"命名空间配额 gpus 已用完：requests.{GPU} 上限 6，已用 4，任务还需要 8。",
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
        en=(f"No pod and no job called nosuch is known (namespace {scene.name}).",),
        zh=(f"没有找到叫 nosuch 的 Pod 或任务（命名空间 {scene.name}）。",),
    )


# Queues


def volcano_queue(scene: Scene, state: str) -> str:
    name = f"{scene.name}-vision"
    queue = {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}
    scene.create(f"/apis/{VOLCANO}/queues", {**queue, "status": {"state": state}})
    return name


def volcano_pod(scene: Scene, group: str, name: str, gpus: int) -> None:
    """A pod that names its group, and not its queue: PyTorchJobs and others in Volcano's care are like that."""
    group_name = {"scheduling.k8s.io/group-name": group}
    scene.pod(name, gpus=gpus, annotations=group_name, spec={"schedulerName": "volcano"})


def test_a_volcano_queue_that_is_closed(scene: Scene, asker: Asker) -> None:
    scene.node("a", gpus=8)
    queue = volcano_queue(scene, "Closed")
    scene.create_here(VOLCANO, "podgroups", "nlp", spec={"minMember": 1, "queue": queue}, status={"phase": "Pending"})
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
        zh=(f"，队列 {queue}\n", f"所在队列 {queue} 的状态是 closed：不再启动新任务。", "把任务提交到其他队列"),
    )


def test_a_volcano_group_that_is_not_complete(scene: Scene, asker: Asker) -> None:
    scene.node("a", gpus=8)
    words = "2/4 tasks in gang unschedulable: pod group is not ready, 2 Pending, 4 minAvailable"
    scene.create_here(
        VOLCANO,
        "podgroups",
        "bert",
        spec={"minMember": 4, "queue": volcano_queue(scene, "Open")},
        status={"phase": "Pending", "conditions": [{"type": "Unschedulable", "status": "True", "message": words}]},
    )
    for number in range(2):
        volcano_pod(scene, "bert", f"bert-{number}", gpus=1)
    asker.hears(
        scene,
        "bert-1",
        "gang-incomplete",
        en=("Its group bert starts all together or not at all: 4 pods have to exist, 2 exist, 2 are missing.", words),
        zh=("任务组 bert 必须整组一起启动：需要 4 个 Pod，现有 2 个，还缺 2 个。", words),
    )


def kueue_queues(scene: Scene) -> str:
    """Make a LocalQueue `train`, and behind it a ClusterQueue of 8 GPUs of which 6 are reserved. Return its name."""
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
    scene.create_here(KUEUE, "localqueues", "train", spec={"clusterQueue": name})
    return name


@pytest.mark.parametrize("owner", ["Job", "Pod"])
def test_a_kueue_workload_without_quota(scene: Scene, asker: Asker, owner: str) -> None:
    """Kubernetes 1.20 knows neither suspended Jobs nor gates: a Job for no pods, a pod that no scheduler looks at."""
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
            f"{queue} 共有 8 个 {GPU}，已预留 6 个；这个任务需要 4 个。",
        ),
    )


# Later pods that came first


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
            f"A later pod got GPUs first: {scene.name}/small of wangwu, submitted ",
            f"after this one, runs with 2 GPUs on {node}.",
            "Why: it asks for 2 GPUs only, which fitted; 8 did not.",
            "it needs 8, and 6 of 8 are free on the 1 node it may use.",
        ),
        zh=(
            f"后提交的任务先拿到了GPU：wangwu 的 {scene.name}/small 比它晚",
            f"已在 {node} 上使用 2 张 GPU。",
            "原因：它只要 2 张 GPU，放得下；8 张放不下。",
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
        en=(f"It gets its place on {node} as soon as the pods of lower priority there have ended.",),
        zh=(f"等 {node} 上优先级较低的 Pod 结束后，它就会在那里启动。",),
    )
    scene.delete("before")
    assert scene.wait_placed("urgent") == node
    asker.hears(
        scene,
        "big",
        "overtaken",
        en=(f"{scene.name}/urgent of wangwu", "Why: its priority is higher (1000, this pod has 0)."),
        zh=(f"wangwu 的 {scene.name}/urgent", "原因：它的优先级更高（1000，本 Pod 为 0）。"),
    )


# Pods that have a node


def test_a_pod_that_is_being_created(scene: Scene, asker: Asker) -> None:
    node = scene.node("a", gpus=8)
    scene.pod("train", gpus=2, user="lisi", node=node)
    asker.hears(
        scene,
        "train",
        "starting",
        en=("is being created", "user lisi", f"It is being started on {node}, for "),
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
            f"Until it is gone it keeps 2 GPUs on {node}",
        ),
        zh=(
            "正在删除",
            "它已经结束，但被 finalizer 留住：example.com/checkpoint。",
            f"在它消失之前，一直占着 {node} 上的 2 张 GPU",
        ),
    )


# The daemon, and without it


def test_the_daemon_learns_within_a_second(scene: Scene, asker: Asker) -> None:
    node = scene.node("a", gpus=8)
    scene.pod("quick", gpus=1, node=node)
    assert asker.wait(scene, "quick", "starting") < 1
    scene.delete("quick")
    assert asker.wait(scene, "quick", "unknown-name") < 1


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
        assert asked[1:] == found_out[1:]  # the first line says for how long
