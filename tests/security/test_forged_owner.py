"""A tenant writes the name of a victim on pods: GPU hours, mentions and exemptions stay with the namespace's owner."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.alert.receivers.base import OwnerContact
from monitor.cleanup.inputs import Planner, PlannerDeps
from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.model import CleanupPlan
from monitor.cleanup.policy import CleanupPolicy, Exempt, GpuPolicy, PodPolicy
from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.live import LiveCluster
from monitor.config.root import Config
from monitor.detect.base import RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import image_pull
from monitor.facts import GpuInventory, NodeSnapshot
from monitor.facts.cluster import GpuState
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kept_facts import KeptFacts
from monitor.facts.kube import PodFact
from monitor.facts.workload import ContainerFact
from monitor.kube.client import connect
from monitor.queries.cluster import current_moment
from monitor.report.buckets import GpuTimeTotals
from tests.alert.receivers.batches import batch, receiver
from tests.alert.scenario import Scenario
from tests.cluster.builders import card, process
from tests.cluster.living import living, settings, until
from tests.support.fake_agents import FakeAgent, reports
from tests.support.living_api import LivingApi, Object, kube_node, kube_pod
from tests.support.receivers.bots import WeComBot

MALLORY, VICTIM = "mallory@lab", "victim@lab"
TENANT, SHARED = "mallory-ns", "pai"  # one has an owner, the other has none
# Labels and annotations by which a pod names its user, on each platform that reads them.
FORGERIES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "user": ({"user": VICTIM}, {}),
    "user-name": ({"userName": VICTIM}, {}),
    "owner": ({"owner": VICTIM}, {}),
    "openpai": ({"FC_FRAMEWORK_NAME": "job", "userName": VICTIM, "virtualCluster": "vip"}, {}),
    "aiarts": ({"jobId": "7", "userName": VICTIM, "vcName": "vip"}, {}),
    "kubedl": ({}, {"kubedl.io/tenancy": json.dumps({"user": VICTIM})}),
    "arena": ({}, {"arena.kubeflow.org/username": VICTIM}),
    "jupyterhub": ({}, {"hub.jupyter.org/username": VICTIM}),
}
CONFIG = Config.model_validate({})


def tenant_pod(name: str, namespace: str = TENANT, **meta: object) -> Object:
    """A pod with one GPU, whose image cannot be pulled by one of its containers."""
    pod = kube_pod(name, "n1", gpus=1, **({"namespace": namespace} | meta))
    waiting = {"reason": "ErrImagePull", "message": 'failed to pull image "lab/a:1": not found'}
    pod["status"] |= {
        "startTime": "2020-01-01T00:00:00Z",
        "containerStatuses": [{"name": "main", "image": "lab/a:1", "state": {"waiting": waiting}}],
    }
    return pod


def forged_pods(namespace: str) -> list[Object]:
    return [
        tenant_pod(f"{namespace}-{name}", namespace, labels=labels, annotations=annotations)
        for name, (labels, annotations) in FORGERIES.items()
    ]


def namespace(name: str, owner: str | None = None) -> Object:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "annotations": {"owner": owner} if owner else {}}}


def holding(*pods: Object) -> NodeSnapshot:
    """Snapshot of a node on which each pod has a process on a GPU of its own."""
    processes = tuple(process(100 + n, n, pod_uid=pod["metadata"]["uid"]) for n, pod in enumerate(pods))
    cards = tuple(card(n, utilization_ratio=0.0) for n in range(len(pods)))
    return NodeSnapshot(
        node="n1",
        at=time.time(),
        agent_version="0",
        gpu=GpuInventory(gpus=cards),
        gpu_processes=processes,
        pod_devices=(),
        containers=(),
    )


def watching(folder: Path, config: Config, *pods: Object, **owners: str) -> Iterator[LiveCluster]:
    """A cluster that sees these pods and their idle GPUs, through the ports of an API server and of an agent."""
    api, running = LivingApi(), [pod for pod in pods if pod["status"]["phase"] == "Running"]
    api.put("nodes", kube_node("n1", len(running)))
    for name in {pod["metadata"]["namespace"] for pod in pods}:
        api.put("namespaces", namespace(name, owners.get(name.replace("-", "_"))))
    for pod in pods:
        api.put("pods", pod)
    with api.served(), FakeAgent(reports(holding(*running))) as agent:
        limits = StateLimits(settle=0.1, stale_after=60.0, idle_after=0.2)
        chosen = replace(settings(agent), rules=config.daemon.platform_rules(), limits=limits)
        with living(LiveCluster(chosen, connect(api.kubeconfig(folder)))) as cluster:
            cluster.wait_settled(30)
            until(
                cluster,
                lambda view: len(view.gpus) == len(running) and all(g.state is GpuState.IDLE_HELD for g in view.gpus),
                "all GPUs are idle",
            )
            yield cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    """Forged pods in the namespace of mallory, and the same pods in a shared namespace."""
    yield from watching(tmp_path, CONFIG, *forged_pods(TENANT), *forged_pods(SHARED), mallory_ns=MALLORY)


def gpu_seconds(cluster: LiveCluster) -> dict[str | None, float]:
    totals = GpuTimeTotals(cycle=15.0)
    for moment in (0.0, 10.0):
        totals.add(cluster.view, 1_000_000.0 + moment, moment)
    seconds: dict[str | None, float] = {}
    for bucket in totals.buckets():
        seconds[bucket.user] = seconds.get(bucket.user, 0.0) + bucket.allocated
    return seconds


def test_gpu_hours_are_charged_to_the_owner_of_the_namespace(cluster: LiveCluster) -> None:
    """In a shared namespace without an owner, platforms such as OpenPAI and AiArts keep their labels."""
    each = 10.0 * len(FORGERIES)
    assert gpu_seconds(cluster) == {MALLORY: each, VICTIM: each}
    users = {pod.name: pod.identity.user for pod in cluster.view.pods}
    assert users == {f"{TENANT}-{name}": MALLORY for name in FORGERIES} | {f"{SHARED}-{n}": VICTIM for n in FORGERIES}
    assert {pod.identity.queue for pod in cluster.view.pods if pod.name.endswith("-openpai")} == {"vip"}


def test_a_message_mentions_the_owner_of_the_namespace(cluster: LiveCluster) -> None:
    facts = KeptFacts("nvidia.com/gpu").at(current_moment(cluster))
    found = detect((image_pull.RULE,), {}, RuleContext(facts, time.time()), DetectionHistory()).findings
    findings = [each for each in found if each.labels["namespace"] == TENANT]
    assert len(findings) == len(FORGERIES)
    contacts = {MALLORY: OwnerContact(wecom="MalloryId"), VICTIM: OwnerContact(wecom="VictimId")}
    with WeComBot() as bot:
        for notification in Scenario().evaluate(*findings):
            receiver("wecom", bot.url, owners=contacts).deliver(batch(notification))
        sent = json.dumps(bot.taken)
    assert "<@MalloryId>" in sent
    assert "VictimId" not in sent


def planned(cluster: LiveCluster, folder: Path, policy: CleanupPolicy) -> CleanupPlan:
    with closing(CleanupJournal(str(folder / "cleanup.db"))) as journal:
        deps = PlannerDeps(cluster, journal, None, lambda _: None, lambda _: None)
        return Planner(deps).plan(policy, None)


def test_an_exemption_of_the_victim_protects_no_pod_of_another(cluster: LiveCluster, tmp_path: Path) -> None:
    policy = GpuPolicy(name="g", notice=0.0, zombie_after=None, idle_after=0.0, exempt=Exempt(users=(VICTIM,)))
    plan = planned(cluster, tmp_path, policy)
    assert {item.name for item in plan.items} == {f"{TENANT}/{TENANT}-{name}" for name in FORGERIES}
    assert {item.owner for item in plan.items} == {MALLORY}
    assert {(item.name, item.protection) for item in plan.kept} == {
        (f"{SHARED}/{SHARED}-{name}", "exempt") for name in FORGERIES
    }


def test_only_a_selector_that_is_trusted_outranks_the_owner(tmp_path: Path) -> None:
    config = Config.model_validate({"daemon": {"trusted_selectors": ["label:userName"]}})
    for cluster in watching(tmp_path, config, *forged_pods(TENANT), mallory_ns=MALLORY):
        users = {pod.name.removeprefix(f"{TENANT}-"): pod.identity.user for pod in cluster.view.pods}
        trusted = {name for name, (labels, _) in FORGERIES.items() if "userName" in labels}
        assert users == {name: VICTIM if name in trusted else MALLORY for name in FORGERIES}


def test_a_container_of_an_unknown_pod_is_not_attributed_by_its_labels() -> None:
    """Agents report the labels of containers; Kubernetes decides whose pods they are."""
    claimed = ContainerFact(id="c", runtime="cri", state="running", name="c", pod_uid="gone", user=VICTIM)
    known = make_cluster_facts(pods=(PodFact(uid="other", name="p", namespace=TENANT),))
    assert known.container_user(claimed) is None
    assert ClusterFacts().container_user(claimed) == VICTIM  # without Kubernetes there is nothing else


DAEMON_SET = [{"kind": "DaemonSet", "name": "d", "uid": "uid-d", "apiVersion": "apps/v1", "controller": True}]
NODE = [{"kind": "Node", "name": "n1", "uid": "uid-n1", "apiVersion": "v1", "controller": True}]
MIRROR = {"kubernetes.io/config.mirror": "x"}


def test_daemon_set_and_static_pods_are_exempt_only_where_no_tenant_can_create_them(tmp_path: Path) -> None:
    pods = [
        tenant_pod("set", ownerReferences=DAEMON_SET),
        tenant_pod("static", ownerReferences=NODE),
        tenant_pod("mirror", annotations=MIRROR),
        tenant_pod("disguised", "mallory-system", ownerReferences=DAEMON_SET),
        tenant_pod("unowned", "team", ownerReferences=DAEMON_SET),
        tenant_pod("exporter", "gpu-operator", ownerReferences=DAEMON_SET),
        tenant_pod("proxy", "volcano-system", annotations=MIRROR),
        tenant_pod("plugin", "kube-system", ownerReferences=DAEMON_SET),
    ]
    platform = {"gpu-operator/exporter", "volcano-system/proxy", "kube-system/plugin"}
    tenants = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods} - platform
    policy = GpuPolicy(name="g", notice=0.0, zombie_after=None, idle_after=0.0)
    for cluster in watching(tmp_path, CONFIG, *pods, mallory_ns=MALLORY, mallory_system=MALLORY):
        plan = planned(cluster, tmp_path, policy)
        assert {item.name for item in plan.items} == tenants
        assert {(item.name, item.protection) for item in plan.kept} == {(name, "exempt") for name in platform}


def test_finished_pods_of_a_tenant_are_deleted_whatever_they_claim_to_belong_to(tmp_path: Path) -> None:
    ended = {"phase": "Succeeded", "conditions": [{"type": "Ready", "lastTransitionTime": "2020-01-02T00:00:00Z"}]}
    pods = [
        kube_pod(name, "n1", namespace=where, ownerReferences=DAEMON_SET) | {"status": ended}
        for name, where in (("set", TENANT), ("disguised", "mallory-system"), ("exporter", "gpu-operator"))
    ]
    for cluster in watching(tmp_path, CONFIG, *pods, mallory_ns=MALLORY, mallory_system=MALLORY):
        plan = planned(cluster, tmp_path, PodPolicy(name="p", keep_newest=0))
        assert {item.name for item in plan.items} == {f"{TENANT}/set", "mallory-system/disguised"}
        assert [(item.name, item.protection) for item in plan.kept] == [("gpu-operator/exporter", "exempt")]
