"""Identity of pods: every platform of the table, and combinations of platforms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from monitor.cluster.identity import identify
from monitor.cluster.owners import MAX_STEPS, kueue_queue_of, no_owners, workload_of
from monitor.cluster.platforms import PLATFORMS, PlatformRule, all_rules, check_rule, required_fields
from monitor.cluster.selectors import parse_selector
from monitor.facts.cluster import Identity
from monitor.facts.kube import OwnerFact, OwnerRef, PodFact
from monitor.kube.decode.stream import decode_pod_list

RULES = all_rules()


@dataclass
class Row:
    name: str
    expect: Identity
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    owner: OwnerRef | None = None
    rules: tuple[PlatformRule, ...] = RULES


def owner_ref(kind: str, name: str, api_version: str | None = None) -> OwnerRef:
    return OwnerRef(kind=kind, name=name, uid=f"uid-{name}", api_version=api_version)


PYTORCH_JOB = owner_ref("PyTorchJob", "bert", "kubeflow.org/v1")
TRAINING = {
    "training.kubeflow.org/job-name": "bert",
    "training.kubeflow.org/replica-type": "worker",
    "training.kubeflow.org/replica-index": "3",
}
LWS = {"leaderworkerset.sigs.k8s.io/name": "llama", "leaderworkerset.sigs.k8s.io/group-index": "1"}
JOBSET = {
    "jobset.sigs.k8s.io/jobset-name": "gemma",
    "jobset.sigs.k8s.io/replicatedjob-name": "workers",
    "jobset.sigs.k8s.io/job-index": "1",
}
DLC = PlatformRule(name="pai-dlc", when=("label:dlc/job",), user=("label:dlc/user",), job=("label:dlc/job",))
MODELARTS = PlatformRule(
    name="modelarts",
    when=("annotation:modelarts/info",),
    user=("annotation:modelarts/info#owner",),
    job=("annotation:modelarts/info#job",),
    queue=("annotation:modelarts/info#pool",),
)

ROWS = [
    Row("OpenPAI",
        Identity(user="zhangsan", job="zhangsan~detr", role="worker", index="2", queue="vision", platform="openpai",
                 workload_kind="Framework"),
        labels={"userName": "zhangsan", "FC_FRAMEWORK_NAME": "8ce1f2", "FC_TASKROLE_NAME": "worker",
                "FC_TASK_INDEX": "2", "virtualCluster": "vision"},
        env={"PAI_JOB_NAME": "zhangsan~detr"}, owner=owner_ref("ConfigMap", "8ce1f2-attempt")),
    Row("OpenPAI, where the readable name is missing",
        Identity(user="zhangsan", job="8ce1f2", queue="lab", platform="openpai", workload_kind="Framework"),
        labels={"userName": "zhangsan", "FC_FRAMEWORK_NAME": "8ce1f2"}),
    Row("AiArts / DLWorkspace",
        Identity(user="lisi", job="b7a0", role="master", queue="platform", platform="aiarts", workload_kind="Pod"),
        labels={"userName": "lisi", "jobId": "b7a0", "jobRole": "master", "vcName": "platform"}),
    Row("DLWorkspace's distributed jobs are frameworks in a vc",
        Identity(user="lisi", job="b7a0", role="ps", index="0", queue="platform", platform="openpai",
                 workload_kind="Framework"),
        labels={"userName": "lisi", "jobId": "b7a0", "vcName": "platform", "FC_FRAMEWORK_NAME": "b7a0",
                "FC_TASKROLE_NAME": "ps", "FC_TASK_INDEX": "0"}),
    Row("a label jobId alone identifies no platform",
        Identity(user="lab", job="p", queue="lab", platform="plain", workload_kind="Pod"), labels={"jobId": "7"}),
    Row("Volcano, all in labels and annotations as the job controller writes them",
        Identity(user="lab", job="resnet", role="worker", index="1", queue="research", platform="volcano",
                 workload_kind="VolcanoJob"),
        labels={"volcano.sh/job-name": "resnet", "volcano.sh/queue-name": "research"},
        annotations={"volcano.sh/task-spec": "worker", "volcano.sh/task-index": "1", "volcano.sh/job-name": "resnet"},
        owner=owner_ref("Job", "resnet", "batch.volcano.sh/v1alpha1")),
    Row("Volcano, the queue in an annotation",
        Identity(user="lab", job="resnet", queue="research", platform="volcano", workload_kind="VolcanoJob"),
        labels={"volcano.sh/job-name": "resnet"}, annotations={"volcano.sh/queue-name": "research"}),
    Row("Volcano schedules a Deployment",
        Identity(user="lab", job="serving", queue="online", platform="plain", workload_kind="Deployment"),
        labels={"pod-template-hash": "5d8f"}, annotations={"scheduling.volcano.sh/queue-name": "online"},
        owner=owner_ref("ReplicaSet", "serving-5d8f", "apps/v1")),
    Row("Kubeflow training-operator",
        Identity(user="lab", job="bert", role="worker", index="3", queue="lab", platform="kubeflow",
                 workload_kind="PyTorchJob"),
        labels=TRAINING, owner=PYTORCH_JOB),
    Row("Kubeflow before 2021",
        Identity(user="lab", job="mnist", role="ps", index="0", queue="lab", platform="kubeflow",
                 workload_kind="TFJob"),
        labels={"group-name": "kubeflow.org", "job-name": "mnist", "replica-type": "ps", "replica-index": "0"},
        owner=owner_ref("TFJob", "mnist", "kubeflow.org/v1")),
    Row("LeaderWorkerSet, the leader of a group",
        Identity(user="lab", job="llama", role="leader", index="1", queue="lab", platform="leaderworkerset",
                 workload_kind="LeaderWorkerSet"),
        labels={**LWS, "leaderworkerset.sigs.k8s.io/worker-index": "0", "apps.kubernetes.io/pod-index": "1"},
        owner=owner_ref("StatefulSet", "llama", "apps/v1")),
    Row("LeaderWorkerSet, a worker belongs to a StatefulSet of its leader, and a queue of Kueue",
        Identity(user="lab", job="llama", role="worker", index="3", queue="team-a", platform="leaderworkerset",
                 workload_kind="LeaderWorkerSet"),
        labels={**LWS, "leaderworkerset.sigs.k8s.io/worker-index": "3", "kueue.x-k8s.io/queue-name": "team-a",
                "kueue.x-k8s.io/pod-group-name": "leaderworkerset-llama-1-ab12c"},
        owner=owner_ref("StatefulSet", "llama-1", "apps/v1")),
    Row("RayJob, its name in a label",
        Identity(user="lab", job="tune", role="worker", queue="lab", platform="ray", workload_kind="RayJob"),
        labels={"ray.io/cluster": "tune-x7k2p", "ray.io/node-type": "worker", "ray.io/group": "gpus",
                "ray.io/originated-from-cr-name": "tune", "ray.io/originated-from-crd": "RayJob"},
        owner=owner_ref("RayCluster", "tune-x7k2p", "ray.io/v1")),
    Row("RayJob, the name of its cluster is generated",
        Identity(user="lab", job="tune", role="head", queue="lab", platform="ray", workload_kind="RayCluster"),
        labels={"ray.io/cluster": "tune-raycluster-x7k2p", "ray.io/node-type": "head"},
        owner=owner_ref("RayCluster", "tune-raycluster-x7k2p", "ray.io/v1")),
    Row("RayCluster",
        Identity(user="lab", job="shared", role="head", queue="lab", platform="ray", workload_kind="RayCluster"),
        labels={"ray.io/cluster": "shared", "ray.io/node-type": "head"},
        owner=owner_ref("RayCluster", "shared", "ray.io/v1")),
    Row("JobSet",
        Identity(user="lab", job="gemma", role="workers", index="2", queue="lab", platform="jobset",
                 workload_kind="JobSet"),
        labels=JOBSET, annotations={"batch.kubernetes.io/job-completion-index": "2"},
        owner=owner_ref("Job", "gemma-workers-1", "batch/v1")),
    Row("JobSet of Jobs with one pod each",
        Identity(user="lab", job="gemma", role="workers", index="1", queue="lab", platform="jobset",
                 workload_kind="JobSet"),
        labels=JOBSET, owner=owner_ref("Job", "gemma-workers-1", "batch/v1")),
    Row("TrainJob of Kubeflow Trainer 2",
        Identity(user="lab", job="gemma", role="trainer", index="4", queue="lab", platform="trainer",
                 workload_kind="TrainJob"),
        labels={**JOBSET, "trainer.kubeflow.org/trainjob-ancestor-step": "trainer",
                "batch.kubernetes.io/job-completion-index": "4"},
        owner=owner_ref("Job", "gemma-node-0", "batch/v1")),
    Row("KAI schedules a PyTorchJob",
        Identity(user="lab", job="bert", role="worker", index="3", queue="team-k", platform="kubeflow",
                 workload_kind="PyTorchJob"),
        labels={**TRAINING, "kai.scheduler/queue": "team-k"}, owner=PYTORCH_JOB),
    Row("KAI schedules a Job",
        Identity(user="lab", job="etl", queue="team-k", platform="plain", workload_kind="Job"),
        labels={"kai.scheduler/queue": "team-k"}, owner=owner_ref("Job", "etl", "batch/v1")),
    Row("YuniKorn",
        Identity(user="lab", job="app-01", queue="root.sandbox", platform="yunikorn", workload_kind="Pod"),
        labels={"applicationId": "app-01", "queue": "root.sandbox"}),
    Row("YuniKorn since 1.6",
        Identity(user="lab", job="app-01", queue="root.sandbox", platform="yunikorn", workload_kind="Pod"),
        labels={"yunikorn.apache.org/app-id": "app-01", "yunikorn.apache.org/queue": "root.sandbox"}),
    Row("YuniKorn's application of all pods of a namespace is no job",
        Identity(user="lab", job="etl", queue="root.lab", platform="plain", workload_kind="Job"),
        labels={"applicationId": "yunikorn-lab-autogen", "queue": "root.lab"},
        owner=owner_ref("Job", "etl", "batch/v1")),
    Row("a label queue alone is not YuniKorn's",
        Identity(user="lab", job="p", queue="lab", platform="plain", workload_kind="Pod"), labels={"queue": "high"}),
    Row("Kueue, a group of pods",
        Identity(user="lab", job="sweep", queue="team-a", platform="kueue", workload_kind="Pod"),
        labels={"kueue.x-k8s.io/queue-name": "team-a", "kueue.x-k8s.io/pod-group-name": "sweep"}),
    Row("Kueue, a Job",
        Identity(user="lab", job="etl", queue="team-b", platform="plain", workload_kind="Job"),
        labels={"kueue.x-k8s.io/local-queue-name": "team-b", "job-name": "etl"},
        owner=owner_ref("Job", "etl", "batch/v1")),
    Row("KubeDL",
        Identity(user="wangwu", job="wide", role="chief", index="0", queue="lab", platform="kubedl",
                 workload_kind="TFJob"),
        labels={"group-name": "kubedl.io", "job-name": "wide", "replica-type": "chief", "replica-index": "0"},
        annotations={"kubedl.io/tenancy": json.dumps({"tenant": "t", "user": "wangwu"})},
        owner=owner_ref("TFJob", "wide", "training.kubedl.io/v1alpha1")),
    Row("KubeDL, the annotation is not JSON",
        Identity(user="lab", job="wide", queue="lab", platform="kubedl", workload_kind="Pod"),
        labels={"job-name": "wide"}, annotations={"kubedl.io/tenancy": "{oops"}),
    Row("KubeDL, the annotation is JSON of another shape",
        Identity(user="lab", job="wide", queue="lab", platform="kubedl", workload_kind="Pod"),
        labels={"job-name": "wide"}, annotations={"kubedl.io/tenancy": '{"user": {"name": "x"}}'}),
    Row("Arena records users as service accounts",
        Identity(user="t-wanghai", job="dolphin", queue="lab", platform="kubedl", workload_kind="Pod"),
        labels={"job-name": "dolphin"},
        annotations={"arena.kubeflow.org/username": "system:serviceaccount:kube-ai:t-wanghai"}),
    Row("PAI DLC, by configuration",
        Identity(user="zhaoliu", job="dlc-1", queue="lab", platform="pai-dlc", workload_kind="Pod"),
        labels={"dlc/job": "dlc-1", "dlc/user": "zhaoliu"}, rules=all_rules([DLC])),
    Row("ModelArts, by configuration",
        Identity(user="sunqi", job="ma-9", queue="pool-1", platform="modelarts", workload_kind="Pod"),
        annotations={"modelarts/info": json.dumps({"owner": "sunqi", "job": "ma-9", "pool": "pool-1"})},
        rules=all_rules([MODELARTS])),
    Row("JupyterHub, a named server",
        Identity(user="zhou@lab", job="gpu-big", queue="lab", platform="jupyterhub", workload_kind="Notebook"),
        annotations={"hub.jupyter.org/username": "zhou@lab", "hub.jupyter.org/servername": "gpu-big"}),
    Row("JupyterHub, the default server has no name",
        Identity(user="zhou@lab", job="p", queue="lab", platform="jupyterhub", workload_kind="Notebook"),
        annotations={"hub.jupyter.org/username": "zhou@lab", "hub.jupyter.org/servername": ""}),
    Row("Kubeflow notebook",
        Identity(user="wu@lab", job="nb", queue="kubeflow-wu", platform="kubeflow-notebook", workload_kind="Notebook"),
        labels={"notebook-name": "nb", "statefulset": "nb"}, owner=owner_ref("StatefulSet", "nb", "apps/v1")),
    Row("Kubeflow notebook in a namespace without an owner",
        Identity(user="lab", job="nb", queue="lab", platform="kubeflow-notebook", workload_kind="Notebook"),
        labels={"notebook-name": "nb"}),
    Row("plain Job with a user's label",
        Identity(user="zheng", job="etl", queue="lab", platform="plain", workload_kind="Job"),
        labels={"user": "zheng", "job-name": "etl"}, owner=owner_ref("Job", "etl", "batch/v1")),
    Row("plain, the label is configured",
        Identity(user="zheng", job="etl", queue="lab", platform="plain", workload_kind="Job"),
        labels={"user": "no", "lab.io/member": "zheng"}, owner=owner_ref("Job", "etl", "batch/v1"),
        rules=all_rules(user_labels=["lab.io/member"])),
    Row("plain StatefulSet",
        Identity(user="lab", job="redis", index="2", queue="lab", platform="plain", workload_kind="StatefulSet"),
        labels={"apps.kubernetes.io/pod-index": "2"}, owner=owner_ref("StatefulSet", "redis", "apps/v1")),
    Row("plain pod",
        Identity(user="lab", job="p", queue="lab", platform="plain", workload_kind="Pod")),
    Row("a PyTorchJob in a Kueue queue with a plain user label",
        Identity(user="qian", job="bert", role="worker", index="3", queue="team-a", platform="kubeflow",
                 workload_kind="PyTorchJob"),
        labels={**TRAINING, "kueue.x-k8s.io/queue-name": "team-a", "userName": "qian"}, owner=PYTORCH_JOB),
    Row("a PyTorchJob in a Volcano queue, submitted by Arena",
        Identity(user="qian", job="bert", role="worker", index="3", queue="gold", platform="kubeflow",
                 workload_kind="PyTorchJob"),
        labels=TRAINING, owner=PYTORCH_JOB,
        annotations={"scheduling.volcano.sh/queue-name": "gold", "arena.kubeflow.org/username": "qian"}),
    Row("Volcano comes before Kueue, as in the table",
        Identity(user="lab", job="resnet", queue="gold", platform="volcano", workload_kind="VolcanoJob"),
        labels={"volcano.sh/job-name": "resnet", "volcano.sh/queue-name": "gold", "kueue.x-k8s.io/queue-name": "b"}),
    Row("role and index come with the job, never from another platform",
        Identity(user="lab", job="resnet", queue="lab", platform="volcano", workload_kind="VolcanoJob"),
        labels={"volcano.sh/job-name": "resnet", **TRAINING}),
    Row("configuration comes before the table",
        Identity(user="boss", job="mine", queue="gold", platform="ours", workload_kind="Pod"),
        labels={"volcano.sh/job-name": "resnet", "volcano.sh/queue-name": "gold", "ours": "mine", "who": "boss"},
        rules=all_rules([PlatformRule(name="ours", when=("label:ours",), user=("label:who",), job=("label:ours",))])),
    Row("KServe",
        Identity(user="lab", job="chat", role="predictor", queue="lab", platform="kserve", inference=True,
                 workload_kind="InferenceService"),
        labels={"serving.kserve.io/inferenceservice": "chat", "component": "predictor"},
        owner=owner_ref("ReplicaSet", "chat-predictor-00001", "apps/v1")),
    Row("Ray Serve",
        Identity(user="lab", job="rag", role="worker", queue="lab", platform="rayservice", inference=True,
                 workload_kind="RayService"),
        labels={"ray.io/originated-from-crd": "RayService", "ray.io/originated-from-cr-name": "rag",
                "ray.io/cluster": "rag-raycluster-x", "ray.io/node-type": "worker"}),
    Row("a RayJob is no service",
        Identity(user="lab", job="tune", queue="lab", platform="ray", workload_kind="RayCluster"),
        labels={"ray.io/originated-from-crd": "RayJob", "ray.io/cluster": "tune"},
        owner=owner_ref("RayCluster", "tune")),
    Row("Knative",
        Identity(user="lab", job="embed", queue="lab", platform="knative", inference=True,
                 workload_kind="KnativeService"),
        labels={"serving.knative.dev/service": "embed"}),
    Row("a label says that it is inference",
        Identity(user="lab", job="p", queue="lab", platform="plain", inference=True, workload_kind="Pod"),
        labels={"app.kubernetes.io/component": "inference"}),
    Row("configuration says that it is not",
        Identity(user="lab", job="p", queue="lab", platform="plain", workload_kind="Pod"),
        labels={"app.kubernetes.io/component": "inference", "batch": "1"},
        rules=all_rules([PlatformRule(name="ours", when=("label:batch",), inference=False)])),
    Row("inference services are not told apart",
        Identity(user="lab", job="chat", queue="lab", platform="kserve", workload_kind="InferenceService"),
        labels={"serving.kserve.io/inferenceservice": "chat"}, rules=all_rules(inference=False)),
    Row("empty values are nothing",
        Identity(user="lab", job="p", queue="lab", platform="plain", workload_kind="Pod"),
        labels={"userName": " ", "volcano.sh/job-name": "", "FC_FRAMEWORK_NAME": ""}),
]  # fmt: skip

NAMESPACE_OWNERS = {"kubeflow-wu": "wu@lab"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_platforms(row: Row) -> None:
    pod = PodFact(
        uid="u",
        name="p",
        namespace="kubeflow-wu" if row.expect.user == "wu@lab" else "lab",
        labels=dict(row.labels),
        annotations=dict(row.annotations),
        env=dict(row.env),
        owner=row.owner,
    )
    assert identify(pod, no_owners, row.rules, NAMESPACE_OWNERS) == row.expect


def test_every_platform_has_a_row() -> None:
    naming = {rule.name for rule in PLATFORMS if rule.job}
    assert naming <= {row.expect.platform for row in ROWS}


PORT = [{"containerPort": 8000}]
HEALTH = {"httpGet": {"path": "/health", "port": 8000}}
SERVING: list[tuple[str, str, dict[str, object], bool]] = [
    ("a port and an HTTP probe", "Deployment", {"ports": PORT, "readinessProbe": HEALTH}, True),
    ("a port and a gRPC probe", "StatefulSet", {"ports": PORT, "readinessProbe": {"grpc": {"port": 9000}}}, True),
    ("a group of leaders and workers", "LeaderWorkerSet", {"ports": PORT, "readinessProbe": HEALTH}, True),
    (
        "a probe that runs a command",
        "Deployment",
        {"ports": PORT, "readinessProbe": {"exec": {"command": ["x"]}}},
        False,
    ),
    ("a port only", "Deployment", {"ports": PORT}, False),
    ("a probe only", "Deployment", {"readinessProbe": HEALTH}, False),
    ("no ports", "Deployment", {"ports": None, "readinessProbe": HEALTH}, False),
    ("a job that happens to have a port", "Job", {"ports": PORT, "readinessProbe": HEALTH}, False),
    ("a notebook", "StatefulSet", {"ports": PORT, "readinessProbe": HEALTH, "notebook": True}, False),
]


@pytest.mark.parametrize(("name", "kind", "container", "expect"), SERVING, ids=[row[0] for row in SERVING])
def test_what_serves_requests(name: str, kind: str, container: dict[str, object], expect: bool) -> None:
    labels = {"notebook-name": "nb"} if container.get("notebook") else {}
    owner = {"kind": kind, "name": "chat", "uid": "o", "apiVersion": "v1", "controller": True}
    meta = {"name": "p", "namespace": "lab", "uid": "u", "labels": labels, "ownerReferences": [owner]}
    item = {"metadata": meta, "spec": {"containers": [{"name": "c", **container}]}}
    (pod,) = decode_pod_list(json.dumps({"items": [item]}).encode(), required_fields(RULES)).items
    assert identify(pod, no_owners, RULES, {}).inference is expect


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_rules_need_is_kept_when_decoding(row: Row) -> None:
    """The same rows through JSON: exactly the fields that rules read are kept."""
    owners = [{"kind": row.owner.kind, "name": row.owner.name, "uid": row.owner.uid,
               "apiVersion": row.owner.api_version}] if row.owner else []  # fmt: skip
    item = {
        "metadata": {
            "name": "p",
            "namespace": "kubeflow-wu" if row.expect.user == "wu@lab" else "lab",
            "uid": "u",
            "labels": row.labels,
            "annotations": {**row.annotations, "secret": "x"},
            "ownerReferences": owners,
        },
        "spec": {
            "containers": [
                {"name": "c", "env": [{"name": n, "value": v} for n, v in {**row.env, "TOKEN": "x"}.items()]}
            ]
        },
    }
    (pod,) = decode_pod_list(json.dumps({"items": [item]}).encode(), required_fields(row.rules)).items
    assert (pod.annotations, pod.env) == (row.annotations, row.env)
    assert identify(pod, no_owners, row.rules, NAMESPACE_OWNERS) == row.expect


RS, JOB = owner_ref("ReplicaSet", "web-5d8f", "apps/v1"), owner_ref("Job", "nightly-27000000", "batch/v1")


def known(*chain: tuple[str, OwnerRef | None]) -> dict[str, OwnerFact]:
    return {
        f"uid-{name}": OwnerFact(uid=f"uid-{name}", name=name, namespace="lab", owner=owner) for name, owner in chain
    }


@pytest.mark.parametrize(
    ("name", "owner", "labels", "facts", "expect"),
    [
        ("ReplicaSet of a Deployment", RS, {}, known(("web-5d8f", owner_ref("Deployment", "web"))), "Deployment web"),
        ("ReplicaSet of a Rollout", RS, {}, known(("web-5d8f", owner_ref("Rollout", "web"))), "Rollout web"),
        ("ReplicaSet, no owner", RS, {"pod-template-hash": "5d8f"}, known(("web-5d8f", None)), "ReplicaSet web-5d8f"),
        ("Job of a CronJob", JOB, {}, known(("nightly-27000000", owner_ref("CronJob", "nightly"))), "CronJob nightly"),
        ("Job of an MPIJob", JOB, {}, known(("nightly-27000000", owner_ref("MPIJob", "m"))), "MPIJob m"),
        ("Job, no owner, such a name", JOB, {}, known(("nightly-27000000", None)), "Job nightly-27000000"),
        ("guess: Deployment", RS, {"pod-template-hash": "5d8f"}, {}, "Deployment web"),
        ("no guess without the hash", RS, {}, {}, "ReplicaSet web-5d8f"),
        ("guess: CronJob", JOB, {}, {}, "CronJob nightly"),
        ("guess: CronJob until 1.21", owner_ref("Job", "nightly-1614834360"), {}, {}, "CronJob nightly"),
        ("no guess: a short number", owner_ref("Job", "run-42"), {}, {}, "Job run-42"),
        ("no guess: only digits", owner_ref("Job", "27000000"), {}, {}, "Job 27000000"),
        ("Volcano's Job", owner_ref("Job", "x-27000000", "batch.volcano.sh/v1alpha1"), {}, {}, "VolcanoJob x-27000000"),
        ("framework", owner_ref("ConfigMap", "fw-attempt"), {"FC_FRAMEWORK_NAME": "fw"}, {}, "Framework fw"),
        ("some other ConfigMap", owner_ref("ConfigMap", "x"), {}, {}, "ConfigMap x"),
        ("PyTorchJob", PYTORCH_JOB, {}, {}, "PyTorchJob bert"),
        ("static pod", owner_ref("Node", "gpu-01"), {}, {}, "StaticPod etcd"),
        ("no owner", None, {}, {}, "Pod etcd-gpu-01"),
    ],
)  # fmt: skip
def test_owners(
    name: str, owner: OwnerRef | None, labels: dict[str, str], facts: dict[str, OwnerFact], expect: str
) -> None:
    pod = PodFact(uid="u", name="etcd-gpu-01", namespace="lab", owner=owner, labels=labels)
    found = workload_of(pod, facts.get)
    assert f"{found.kind} {found.name}" == expect, name


def test_a_ring_of_owners_ends() -> None:
    ring = known(("web-5d8f", RS))
    asked = []

    def lookup(uid: str) -> OwnerFact | None:
        asked.append(uid)
        return ring.get(uid)

    pod = PodFact(uid="u", name="p", namespace="lab", owner=RS)
    workload_of(pod, lookup)
    assert len(asked) == MAX_STEPS
    assert kueue_queue_of(pod, lookup) is None
    assert len(asked) == 2 * MAX_STEPS


def queued(name: str, queue: str | None, owner: OwnerRef | None = None) -> OwnerFact:
    return OwnerFact(uid=f"uid-{name}", name=name, namespace="lab", owner=owner, queue=queue)


@pytest.mark.parametrize(
    ("name", "labels", "owners", "expect"),
    [
        ("only the Job has the label", {}, [queued("etl", "team-b")], "team-b"),
        ("the pod has another one", {"kueue.x-k8s.io/queue-name": "mine"}, [queued("etl", "team-b")], "mine"),
        ("the owner of the Job has it", {}, [queued("etl", None, RS), queued("web-5d8f", "team-c")], "team-c"),
        ("no owner has it", {}, [queued("etl", None)], "lab"),
        ("the Job is gone", {}, [], "lab"),
    ],
)
def test_the_queue_of_kueue_that_an_owner_names(
    name: str, labels: dict[str, str], owners: list[OwnerFact], expect: str
) -> None:
    pod = PodFact(uid="u", name="p", namespace="lab", owner=owner_ref("Job", "etl", "batch/v1"), labels=labels)
    found = identify(pod, {owner.uid: owner for owner in owners}.get, RULES, {})
    assert (found.queue, found.platform) == (expect, "plain"), name


@pytest.mark.parametrize(
    "text", ["", "label", "label:", "labels:x", "annotation:#x", "label:x#y", "env:", "namespace:x", "pod"]
)
def test_selectors_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not a selector; write label:KEY"):
        parse_selector(text)
    with pytest.raises(ValueError, match="is not a selector"):
        check_rule(PlatformRule(name="x", job=("name",), when=(f"label:a & {text}",)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_built_in_rules_are_well_formed(rule: PlatformRule) -> None:
    check_rule(rule)
    assert rule.when or rule.name == "plain"


def test_a_novel_in_an_annotation_is_cut() -> None:
    pod = PodFact(uid="u", name="p", namespace="lab", annotations={"hub.jupyter.org/username": "x" * 100_000})
    assert len(identify(pod, no_owners, RULES, {}).user or "") == 253
