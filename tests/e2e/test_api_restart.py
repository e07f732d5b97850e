"""The API server is killed under load and restarted: the view is retained meanwhile and finally equals a fresh list.

The outage happens once, and each test examines a part of it. A fake agent reports a GPU whose pod must not be
considered deleted while the API server is down.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest
import requests

from monitor.cluster.live import LiveCluster
from monitor.config.root import Config
from monitor.daemon.build import make_cluster
from monitor.facts import GpuFact, GpuInventory, GpuProcessFact, NodeSnapshot
from monitor.facts.cluster import ClusterView, GpuState, GpuView, SourceView
from tests.e2e.scenes import Scene
from tests.lab.api import MERGE_PATCH, NOW, Api
from tests.lab.lab import Lab
from tests.lab.layout import GPU_RESOURCE
from tests.lab.manifests import pod_manifest
from tests.support import wait_until

PODS = 150
KILLED_AT = 50
CARD = "GPU-0b5e7a1c-0000-4000-8000-000000000001"
AWAY = 1.5  # seconds for which the view is observed during the outage
CATCH_UP_SECONDS = 60.0  # after which the view must be correct again


@dataclass(frozen=True)
class Outage:
    """A completed outage. `during` are the views while it lasted, `all` those from before until after it."""

    lab: Lab
    scene: Scene
    cluster: LiveCluster
    agent: str
    during: tuple[ClusterView, ...]
    all: tuple[ClusterView, ...]


class Churn(threading.Thread):
    """Creates, changes and deletes pods; retries each change until the API server accepts it."""

    def __init__(self, lab: Lab, scene: Scene, nodes: list[str]) -> None:
        super().__init__(daemon=True)
        self._api = Api(lab.kubeconfig)
        self._scene = scene
        self._nodes = nodes
        self._dice = random.Random(7)
        self.done = 0

    def run(self) -> None:
        for number in range(PODS):
            name = f"churn-{number}"
            self._make(name, number)
            self._phase(name, "Running")
            self._fate(number)
            if number % 10 == 0:
                cordon = {"spec": {"unschedulable": number % 20 == 0}}
                self._until_heard("PATCH", f"/api/v1/nodes/{self._nodes[0]}", cordon, MERGE_PATCH)
            self.done = number + 1
        self._api.close()

    def _make(self, name: str, number: int) -> None:
        labels = {"FC_FRAMEWORK_NAME": f"job-{number % 30}", "userName": f"user-{number % 7}"}
        labels["virtualCluster"] = f"vc-{number % 4}"
        bound = {"nodeName": self._nodes[number % len(self._nodes)]}
        pod = pod_manifest(name, namespace=self._scene.name, gpus=1 + number % 3, node=None, labels=labels, spec=bound)
        self._until_heard("POST", self._scene.path("v1", "pods"), pod)

    def _fate(self, number: int) -> None:
        """Finish, delete or re-own one of the existing pods, which may be gone already."""
        name = f"churn-{self._dice.randrange(number + 1)}"
        match number % 4:
            case 0:
                self._phase(name, self._dice.choice(("Succeeded", "Failed")))
            case 1:
                self._until_heard("DELETE", self._scene.path("v1", "pods", name), NOW)
            case 2:
                labels = {"userName": f"user-{number % 7 + 7}", "virtualCluster": f"vc-{number % 5}"}
                path = self._scene.path("v1", "pods", name)
                self._until_heard("PATCH", path, {"metadata": {"labels": labels}}, MERGE_PATCH)

    def _phase(self, name: str, phase: str) -> None:
        path = self._scene.path("v1", "pods", f"{name}/status")
        self._until_heard("PATCH", path, {"status": {"phase": phase}}, MERGE_PATCH)

    def _until_heard(self, method: str, path: str, body: Any, kind: str = "application/json") -> None:
        while True:
            try:
                answer = self._api.send(method, path, body, kind)
            except requests.RequestException:
                time.sleep(0.1)
                continue
            if answer.status_code < requests.codes.server_error:  # while it starts, it may respond without data
                return
            time.sleep(0.1)


@contextmanager
def agent_on(node: str, pod_uid: str) -> Iterator[str]:
    """Serve as the agent of a node with one GPU used by a process of this pod; yields its address."""
    process = GpuProcessFact(gpu_uuid=CARD, pid=4711, kind="compute", state="S", pod_uid=pod_uid)
    card = GpuFact(index=0, uuid=CARD, utilization_ratio=0.9, utilization_peak_ratio=0.9)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            snapshot = NodeSnapshot(
                node=node,
                at=time.time(),
                agent_version="1",
                gpu=GpuInventory(gpus=(card,)),
                gpu_processes=(process,),
                pod_devices=(),
            )
            body = msgspec.json.encode(snapshot)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Silence the request log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def following(lab: Lab, agent: str) -> Iterator[LiveCluster]:
    """Follow the lab and this agent."""
    daemon = {
        "cycle": "500ms",
        "kubernetes": {"enabled": "yes", "kubeconfig": str(lab.kubeconfig)},
        "agents": {"static": [agent], "interval": "200ms"},
        "gpu": {"settle": "1s"},
    }
    cluster = make_cluster(Config.model_validate({"daemon": daemon}))
    cluster.start()
    try:
        cluster.wait_settled(60)
        yield cluster
    finally:
        cluster.stop()


class Witness(threading.Thread):
    """Records every view until stopped."""

    def __init__(self, cluster: LiveCluster) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._ended = threading.Event()
        self.views = [cluster.view]

    def run(self) -> None:
        while not self._ended.wait(0.005):
            if self._cluster.view is not self.views[-1]:
                self.views.append(self._cluster.view)

    def stop(self) -> None:
        self._ended.set()
        self.join()


@pytest.fixture(scope="module")
def outage(lab: Lab) -> Iterator[Outage]:
    with ExitStack() as stack:
        scene = stack.enter_context(Scene(lab, "outage"))
        nodes = [scene.node(name, gpus=64) for name in ("a", "b", "c", "d")]
        node = scene.node("steady", gpus=1)
        steady = scene.pod("steady", gpus=1, user="zhangsan", node=node)
        scene.api.patch(scene.path("v1", "pods", "steady/status"), {"status": {"phase": "Running"}})
        agent = stack.enter_context(agent_on(node, steady["metadata"]["uid"]))
        cluster = stack.enter_context(following(lab, agent))
        witness = Witness(cluster)
        witness.start()
        stack.callback(witness.stop)
        churn = Churn(lab, scene, nodes)
        churn.start()
        stack.callback(churn.join, 60)
        wait_until(lambda: churn.done >= KILLED_AT, 30, f"{KILLED_AT} pods are made")
        lab.kill_apiserver()
        try:
            wait_until(lambda: not source(cluster.view, "pods").ok, 10, "the loss is noticed")
            first = len(witness.views)
            time.sleep(AWAY)
            during = tuple(witness.views[first:])
        finally:
            lab.start_component("apiserver")
            stack.callback(revive, lab)
        churn.join(60)
        assert churn.done == PODS
        wait_until(
            lambda: all(each.ok for each in cluster.view.sources), CATCH_UP_SECONDS, "everything is followed again"
        )
        yield Outage(lab, scene, cluster, agent, during, tuple(witness.views))


def revive(lab: Lab) -> None:
    """Restart scheduler and controller manager: by themselves they return half a minute after the API server."""
    for name in ("scheduler", "controller-manager"):
        lab.stop_component(name)
        lab.start_component(name)


def source(view: ClusterView, name: str) -> SourceView:
    return next(each for each in view.sources if each.name == name)


def card(view: ClusterView) -> GpuView:
    return next(gpu for gpu in view.gpus if gpu.uuid == CARD)


def timeless(view: ClusterView) -> dict[str, Any]:
    """A view without timestamps."""
    replace = msgspec.structs.replace
    return {
        "nodes": [replace(node, heard_at=None, silent_since=None) for node in view.nodes],
        "gpus": [replace(gpu, since=None, idle_since=None) for gpu in view.gpus],
        "pods": view.pods,
        "free": view.free,
        "queues": view.queues,
        "users": view.users,
    }


Figures = tuple[set[str], dict[str, int]]  # unfinished pods by uid, and requested GPUs by node


def listed(scene: Scene) -> Figures:
    """The scene's figures from the API server's list."""
    pods, cards = set(), Counter[str]()
    for pod in scene.api.get(scene.path("v1", "pods"))["items"]:
        if pod["status"]["phase"] not in ("Succeeded", "Failed"):
            pods.add(pod["metadata"]["uid"])
            cards[pod["spec"]["nodeName"]] += int(pod["spec"]["containers"][0]["resources"]["limits"][GPU_RESOURCE])
    return pods, dict(cards)


def seen(view: ClusterView, scene: Scene) -> Figures:
    """The scene's figures from the view."""
    pods = {pod.uid for pod in view.pods if pod.namespace == scene.name}
    return pods, {node.name: node.requested for node in view.nodes if node.name.startswith(scene.name)}


def test_while_it_is_away_the_view_stays(outage: Outage) -> None:
    assert len(outage.during) > 1, "time goes on"
    first = timeless(outage.during[0])
    ours = [pod for pod in first["pods"] if pod.namespace == outage.scene.name]
    assert len(ours) > KILLED_AT / 4
    for view in outage.during:
        assert timeless(view) == first


def test_it_says_what_is_missing(outage: Outage) -> None:
    view = outage.during[-1]
    for name, without in (
        ("pods", "pods, their owners and what they ask for"),
        ("nodes", "node states and free GPUs by Kubernetes"),
        ("events", "reasons that only events give"),
    ):
        found = source(view, name)
        assert (found.ok, found.since is not None) == (False, True)
        assert (found.why or "").startswith("stale; no response from the API server: ")
        assert without in (found.why or "")
    assert source(view, "agents").ok


def test_no_pod_is_taken_for_deleted(outage: Outage) -> None:
    assert {card(view).state for view in outage.all} == {GpuState.BUSY}


def test_afterwards_the_view_equals_a_fresh_list(outage: Outage) -> None:
    """Other tests may use the cluster: differences must vanish once they stop changing objects."""
    deadline = time.monotonic() + CATCH_UP_SECONDS
    with following(outage.lab, outage.agent) as cluster:
        fresh = timeless(cluster.view)
    while (live := timeless(outage.cluster.view)) != fresh and time.monotonic() < deadline:
        with following(outage.lab, outage.agent) as cluster:
            fresh = timeless(cluster.view)
    for part, value in fresh.items():
        assert live[part] == value, part


def test_afterwards_the_figures_are_those_of_the_list(outage: Outage) -> None:
    pods, cards = listed(outage.scene)
    assert len(pods) > PODS / 4
    wait_until(lambda: seen(outage.cluster.view, outage.scene) == (pods, cards), CATCH_UP_SECONDS, "the same figures")
    free = {node.name: node.free for node in outage.cluster.view.nodes if node.name in cards}
    assert free == {name: (1 if name.endswith("-steady") else 64) - taken for name, taken in cards.items()}


def test_a_pod_that_is_really_gone_is_told_so(outage: Outage) -> None:
    outage.scene.delete("steady")
    wait_until(lambda: card(outage.cluster.view).state is GpuState.ZOMBIE, 10, "the process has outlived its pod")
    assert [each.key for each in card(outage.cluster.view).evidence] == ["pod-deleted"]
