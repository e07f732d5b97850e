"""`gpuwarden fits` against a real API server and scheduler: 200 random requests on random clusters.

The nodes have no kubelet. Each request is asked first, then its pods are created, and what the scheduler binds decides.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from monitor.cluster.live import LiveCluster
from monitor.config.root import Config
from monitor.daemon.build import make_cluster
from monitor.explain.fits.model import FitsRequest, Layout, Workers
from monitor.queries.cluster import ClusterQueries
from monitor.queries.fits import FitsAnswer
from tests.e2e.fits_clusters import GPU, RandomNode, pods_of, random_holders, random_nodes, random_request
from tests.support import wait_until
from tests.support.kube_api import KubeApiServer
from tests.support.kube_scheduler import kube_scheduler

CLUSTERS = 8
REQUESTS = 25  # of each cluster
PODS = "/api/v1/namespaces/default/pods"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
AT_ONCE = {"gracePeriodSeconds": 0}
LIMIT_SECONDS = 60.0


@dataclass
class World:
    """A cluster of nodes without kubelets, and the questions asked about it."""

    api: KubeApiServer
    live: LiveCluster
    nodes: list[RandomNode] = field(default_factory=list)

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        answer = self.api.request(method, path, body, kind)
        assert answer.status_code < 300, (method, path, answer.status_code, answer.text)
        return answer.json()

    def pods(self) -> dict[str, dict[str, Any]]:
        return {item["metadata"]["name"]: item for item in self.call("GET", PODS)["items"]}

    def add_node(self, node: RandomNode) -> None:
        self.call("POST", "/api/v1/nodes", node.manifest())
        path = f"/api/v1/nodes/{node.name}"
        self.call("PATCH", f"{path}/status", node.status(), STRATEGIC)
        self.call("PATCH", path, node.spec(), MERGE)
        self.nodes.append(node)

    def add_holder(self, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        self.call("POST", PODS, manifest)
        match manifest["metadata"]["labels"]["kind"]:
            case "finished":
                self.call("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}}, MERGE)
            case "terminating":
                self.call("DELETE", f"{PODS}/{name}")

    def delete(self, names: Sequence[str]) -> None:
        known = self.pods()
        for name in names:
            if known[name]["metadata"].get("finalizers"):
                self.call("PATCH", f"{PODS}/{name}", {"metadata": {"finalizers": None}}, MERGE)
            self.api.request("DELETE", f"{PODS}/{name}", AT_ONCE)
        wait_until(lambda: not self.pods().keys() & set(names), LIMIT_SECONDS, f"{names} are gone")

    def clear(self) -> None:
        self.delete(list(self.pods()))
        for node in self.nodes:
            self.call("DELETE", f"/api/v1/nodes/{node.name}")
        self.nodes.clear()

    def ask(self, request: FitsRequest) -> FitsAnswer:
        """The answer by what the watch has seen, once it has seen everything."""
        wait_until(self._up_to_date, LIMIT_SECONDS, "the watch has seen all pods and nodes")
        return ClusterQueries(self.live, GPU).fits(request, "en")

    def _up_to_date(self) -> bool:
        kube = self.live.kube
        assert kube is not None
        pods = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in self.pods().values()}
        nodes = {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"]
            for item in self.call("GET", "/api/v1/nodes")["items"]
        }
        seen_pods = {pod.name: pod.resource_version for pod in kube.pods.snapshot().items}
        seen_nodes = {node.name: node.resource_version for node in kube.nodes.snapshot().items}
        if (pods, nodes) != (seen_pods, seen_nodes):
            return False
        self.live.refresh()
        return True

    def schedule(self, request: FitsRequest, workers: Sequence[Workers], name: str) -> Counter[str]:
        """Pods that the scheduler binds of those of the request, by node; `""` counts the others. They are deleted."""
        names = []
        for manifest in pods_of(request, workers, self.nodes, name):
            self.call("POST", PODS, manifest)
            names.append(manifest["metadata"]["name"])
            wait_until(lambda: _decided(self.pods()[names[-1]]), LIMIT_SECONDS, f"{names[-1]} is decided")
        placed = self.pods()
        self.delete(names)
        return Counter(placed[each]["spec"].get("nodeName", "") for each in names)


def _decided(pod: dict[str, Any]) -> bool:
    """Whether the scheduler has bound or refused a pod."""
    conditions = pod["status"].get("conditions") or ()
    return "nodeName" in pod["spec"] or any(each.get("reason") == "Unschedulable" for each in conditions)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("fits")
    with KubeApiServer(root) as api, kube_scheduler(api, root):
        daemon = {"kubernetes": {"enabled": "yes", "kubeconfig": api.kubeconfig}}
        live = make_cluster(Config.model_validate({"daemon": daemon}))
        live.start()
        try:
            live.wait_settled(LIMIT_SECONDS)
            yield World(api, live)
        finally:
            live.stop()


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_answers_agree_with_the_scheduler(world: World, seed: int) -> None:
    chance = random.Random(seed)
    for node in random_nodes(chance, f"n{seed}"):
        world.add_node(node)
    for manifest in random_holders(chance, world.nodes, f"p{seed}"):
        world.add_holder(manifest)
    try:
        requests = [random_request(chance) for _ in range(REQUESTS)]
        answers = [_checked(world, request, f"r{seed}-{number}") for number, request in enumerate(requests)]
        _check_later(world, list(zip(requests, answers, strict=True)))
    finally:
        world.clear()
    print(seed, Counter(answer.verdict for answer in answers))


def _checked(world: World, request: FitsRequest, name: str) -> FitsAnswer:
    answer = world.ask(request)
    asked = _as_asked(request)
    bound = world.schedule(request, (asked,), name)
    assert answer.fits == (bound[""] == 0), (request, answer.lines, bound)
    assert answer.verdict in ("now", "split", "after", "never"), (request, answer.lines)
    assert (answer.verdict == "split") == bool(answer.splits)
    for number, split in enumerate(answer.splits):
        assert sum(each.pods * each.gpus for each in split.workers) == request.gpus
        bound = world.schedule(request, split.workers, f"{name}-split-{number}")
        assert bound[""] == 0, (request, answer.lines, bound)
    for layout in (*answer.splits, *([answer.layout] if answer.fits and answer.layout else ())):
        assert sum(each.gpus for each in layout.nodes) == request.gpus, (request, layout)
    return answer


def _as_asked(request: FitsRequest) -> Workers:
    return Workers(
        pods=request.pods,
        gpus=request.gpus_per_pod,
        cpu_millicores=request.cpu_millicores,
        memory_bytes=request.memory_bytes,
    )


def _check_later(world: World, asked: list[tuple[FitsRequest, FitsAnswer]]) -> None:
    """After the jobs that one answer names, its job fits; what never fits does not even when all jobs have ended."""
    waiting = [(request, answer) for request, answer in asked if answer.verdict == "after"]
    if waiting:
        request, answer = max(waiting, key=lambda each: len(each[1].waits_for))
        layout: Layout | None = answer.layout
        assert layout is not None
        assert answer.waits_for, answer.lines
        world.delete([job.job for job in answer.waits_for])
        bound = world.schedule(request, layout.workers, "later")
        assert bound[""] == 0, (request, answer.lines, bound)
    world.delete(list(world.pods()))
    for number, (request, answer) in enumerate(asked):
        if answer.verdict == "never":
            bound = world.schedule(request, (_as_asked(request),), f"never-{number}")
            assert bound[""], (request, answer.lines)
