"""List and watch against a real kube-apiserver and etcd that are killed, compacted, and accessed without permission."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from monitor.cluster.identity import identify
from monitor.cluster.platforms import all_rules, required_fields
from monitor.facts.kube import PodFact, SourceFact
from monitor.kube import resources as kube_resources
from monitor.kube.client import connect
from monitor.kube.decode.stream import pods as pods_kind
from monitor.kube.informers import KubeInformers
from monitor.kube.reflector import Reflector, WatchTiming
from monitor.kube.store import ObjectChange, ObjectStore
from tests.support import wait_until
from tests.support.kube_api import KubeApiServer
from tests.support.resource_claims import claim_json, class_json, device_facts, gpu_json, slice_json

pytestmark = pytest.mark.e2e

RULES = all_rules()
KEEP = required_fields(RULES)
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
IMPATIENT = WatchTiming(max_backoff=1.0, forbidden_retry=0.5, absent_retry=0.5, watch_duration=20.0, watch_margin=5.0)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeApiServer]:
    with KubeApiServer(tmp_path_factory.mktemp("kube")) as server:
        yield server


@pytest.fixture
def watch(api: KubeApiServer) -> Iterator[KubeInformers]:
    watch = KubeInformers(connect(api.kubeconfig), KEEP, timing=IMPATIENT)
    watch.start()
    try:
        assert watch.wait_settled(60), watch.sources()
        yield watch
    finally:
        began = time.monotonic()
        watch.stop()
        assert time.monotonic() - began < 30


def new_pod(name: str, **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
        },
    }


def fresh(api: KubeApiServer) -> dict[str, PodFact]:
    page = pods_kind(KEEP).page(api.request("GET", "/api/v1/pods").content)
    assert page.continue_ is None
    return {item.uid: item for item in page.items}


def held(store: ObjectStore[PodFact]) -> dict[str, PodFact]:
    return {item.uid: item for item in store.snapshot().items}


def source(watch: KubeInformers, resource: str) -> SourceFact:
    return next(fact for fact in watch.sources() if fact.resource == resource)


class Churn(threading.Thread):
    """Creates, patches and deletes pods, and continues as far as possible while the API server is down."""

    def __init__(self, api: KubeApiServer, pods: int) -> None:
        super().__init__(daemon=True)
        self._api = api
        self._pods = pods
        self.done = 0

    def run(self) -> None:
        dice = random.Random(7)
        for number in range(self._pods):
            name = f"churn-{number}"
            self._until_heard("POST", PODS, new_pod(name, step="0"))
            for _ in range(dice.randrange(3)):
                self._until_heard(
                    "PATCH", f"{PODS}/{name}", {"metadata": {"labels": {"step": str(dice.random())}}}, MERGE
                )
            if number % 3:
                self._until_heard("DELETE", f"{PODS}/churn-{dice.randrange(number + 1)}")
            self.done = number + 1

    def has_done(self, pods: int) -> bool:
        return self.done >= pods

    def _until_heard(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> None:
        while True:
            try:
                self._api.request(method, path, body, kind)
            except requests.RequestException:
                time.sleep(0.1)
            else:
                return


def test_killing_the_api_server_under_load_loses_no_change(api: KubeApiServer, watch: KubeInformers) -> None:
    churn = Churn(api, 300)
    churn.start()
    for changed in (90, 180):
        wait_until(partial(churn.has_done, changed), 60, f"{changed} pods are made")
        api.kill_api()
        wait_until(lambda: source(watch, "pods").state == "stale", 10, "the loss is noticed")
        assert source(watch, "pods").stale_since is not None
        api.start_api()
        wait_until(lambda: source(watch, "pods").state == "synced", 15, "it is followed again")
    churn.join(60)
    assert churn.done == 300
    expect = fresh(api)
    assert 50 < len(expect) < 300
    wait_until(lambda: held(watch.pods) == expect, 10, "the store equals a fresh list")


def test_a_change_is_reported(api: KubeApiServer) -> None:
    seen: list[ObjectChange[Any]] = []
    store: ObjectStore[PodFact] = ObjectStore()
    reflector = Reflector(
        connect(api.kubeconfig),
        kube_resources.pods(KEEP),
        store,
        on_change=lambda _name, changes: seen.extend(changes),
    )
    reflector.start()
    try:
        assert reflector.wait_settled(60)
        seen.clear()
        assert api.request("POST", PODS, new_pod("quick")).status_code == 201
        wait_until(lambda: any(change.new and change.new.name == "quick" for change in seen), 5, "it is told")
    finally:
        reflector.stop()
        reflector.join(60)


def test_a_version_that_etcd_forgot_is_listed_again(api: KubeApiServer) -> None:
    store: ObjectStore[PodFact] = ObjectStore()
    reflector = Reflector(connect(api.kubeconfig), kube_resources.pods(KEEP), store)
    assert reflector._step() == 0.0  # lists, then stays away for a while
    assert api.request("POST", PODS, new_pod("meanwhile")).status_code == 201
    now = int(api.request("GET", PODS).json()["metadata"]["resourceVersion"])
    api.compact(now)
    api.kill_api()
    api.start_api()  # with a cold cache the old versions are lost
    assert "meanwhile" not in {pod.name for pod in store.snapshot().items}
    reflector._step()  # the watch: 410
    reflector._step()  # the list
    assert (reflector.fact().lists, reflector.fact().failures) == (2, 0)
    assert held(store) == fresh(api)


def test_who_may_not_is_told_what_to_ask_for_and_let_in_when_granted(api: KubeApiServer, tmp_path: Path) -> None:
    config = tmp_path / "weak"
    config.write_text(api.config_for("weak"))
    watch = KubeInformers(connect(str(config)), KEEP, timing=IMPATIENT)
    watch.start()
    try:
        assert watch.wait_settled(60)
        fact = source(watch, "replicasets.apps")
        assert fact.state == "forbidden"
        assert 'grant get, list and watch in a ClusterRole on resource "replicasets" of API group "apps"' in (
            fact.last_error or ""
        )
        assert fact.without == "Deployments: they are guessed from the names of their pods"
        rights = {"apiGroups": ["", "apps", "batch"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
        role = {"metadata": {"name": "reader"}, "rules": [rights]}
        bound = {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "weak"}],
        }
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        assert api.request("POST", f"{rbac}/clusterroles", role).status_code == 201
        assert api.request("POST", f"{rbac}/clusterrolebindings", bound).status_code == 201
        wait_until(lambda: source(watch, "replicasets.apps").state == "synced", 15, "get, list and watch are enough")
        wait_until(lambda: source(watch, "pods").state == "synced", 15, "also for pods")
    finally:
        watch.stop()


def test_owners_are_resolved_from_metadata(api: KubeApiServer, watch: KubeInformers) -> None:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "x"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    apps = "/apis/apps/v1/namespaces/default"
    made = api.request("POST", f"{apps}/deployments", {"metadata": {"name": "web"}, "spec": spec}).json()
    set_owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": made["metadata"]["uid"]}
    replica_set = {
        "metadata": {"name": "anything", "ownerReferences": [{**set_owner, "controller": True}]},
        "spec": spec,
    }
    made = api.request("POST", f"{apps}/replicasets", replica_set).json()
    pod_owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "anything", "uid": made["metadata"]["uid"]}
    pod = new_pod("web-1", userName="zhangsan")
    pod["metadata"]["ownerReferences"] = [{**pod_owner, "controller": True}]
    uid = api.request("POST", PODS, pod).json()["metadata"]["uid"]
    wait_until(lambda: watch.pods.get(uid) and watch.owner(pod_owner["uid"]), 5, "both are seen")
    seen = watch.pods.get(uid)
    assert seen is not None
    whose = identify(seen, watch.owner, RULES, watch.namespace_owners())
    assert (whose.user, whose.job, whose.workload_kind) == ("zhangsan", "web", "Deployment")


def test_claims_slices_and_classes_as_the_api_server_stores_them(api: KubeApiServer, watch: KubeInformers) -> None:
    """The objects that unit tests use are valid, and nothing of them that is read is lost."""
    if api.request("GET", "/apis/resource.k8s.io/v1").status_code == requests.codes.not_found:
        assert source(watch, "resourceclaims.resource.k8s.io").state == "absent"
        return
    root = "/apis/resource.k8s.io/v1"
    claim = claim_json("train-gpu", "gpu-0", "gpu-1", pods=["train"])
    for path, item in (
        ("deviceclasses", class_json()),
        ("resourceslices", slice_json(gpu_json(0), gpu_json(1))),
        ("namespaces/default/resourceclaims", claim),
    ):
        made = api.request("POST", f"{root}/{path}", {**item, "metadata": {"name": item["metadata"]["name"]}})
        assert made.status_code == requests.codes.created, made.text
    patched = api.request(
        "PATCH", f"{root}/namespaces/default/resourceclaims/train-gpu/status", {"status": claim["status"]}, MERGE
    )
    assert patched.status_code == requests.codes.ok, patched.text
    wait_until(lambda: any(each.allocated for each in watch.devices().claims), 20, "the allocated claim arrives")
    known, expected = watch.devices(), device_facts([claim], [slice_json(gpu_json(0), gpu_json(1))])
    assert known.known
    assert [each.devices for each in known.slices] == [each.devices for each in expected.slices]
    assert [(each.drivers, each.types) for each in known.classes] == [
        (each.drivers, each.types) for each in expected.classes
    ]
    (allocated,) = known.claims
    (wanted,) = expected.claims
    assert (allocated.requests, allocated.devices, allocated.node, allocated.reserved_for) == (
        wanted.requests, wanted.devices, wanted.node, wanted.reserved_for,
    )  # fmt: skip


def test_an_add_on_installed_later_is_found(api: KubeApiServer, watch: KubeInformers) -> None:
    name = "queues.scheduling.volcano.sh"
    assert source(watch, name).state == "absent"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    crd = {
        "metadata": {"name": name},
        "spec": {
            "group": "scheduling.volcano.sh",
            "scope": "Cluster",
            "names": {"plural": "queues", "singular": "queue", "kind": "Queue", "listKind": "QueueList"},
            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": schema}],
        },
    }
    made = api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    assert made.status_code == 201, made.text
    wait_until(lambda: source(watch, name).state == "synced", 20, "the queues are followed")
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "vision"},
        "spec": {"weight": 2, "capability": {"nvidia.com/gpu": 16}},
    }
    made = api.request("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", queue)
    assert made.status_code == 201, made.text
    wait_until(lambda: watch.queues(), 5, "the queue is seen")
    assert [(q.name, q.capacity) for q in watch.queues()] == [("vision", {"nvidia.com/gpu": 16.0})]
    assert source(watch, "podgroups.scheduling.volcano.sh").state == "absent", "the group alone does not make it"
