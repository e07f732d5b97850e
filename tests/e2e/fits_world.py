"""An API server and a scheduler without kubelets, with `fits` asked by what the project's own watch has seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monitor.cluster.live import LiveCluster
from monitor.config.root import Config
from monitor.daemon.build import make_cluster
from monitor.explain.fits.model import FitsRequest, Workers
from monitor.queries.cluster import ClusterQueries
from monitor.queries.fits import FitsAnswer
from tests.e2e.fits_clusters import GPU, RandomNode, pods_of
from tests.support import wait_until
from tests.support.kube_api import KubeApiServer
from tests.support.kube_scheduler import kube_scheduler

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
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
        self.call("POST", NODES, node.manifest())
        path = f"{NODES}/{node.name}"
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
            self.call("DELETE", f"{NODES}/{node.name}")
        self.nodes.clear()

    def ask(self, request: FitsRequest) -> FitsAnswer:
        """The answer by what the watch has seen, once it has seen everything."""
        wait_until(self._up_to_date, LIMIT_SECONDS, "the watch has seen all pods and nodes")
        return ClusterQueries(self.live, GPU).fits(request, "en")

    def versions(self, path: str) -> dict[str, str]:
        """Resource versions of objects, by name."""
        items = [item["metadata"] for item in self.call("GET", path)["items"]]
        return {item["name"]: item["resourceVersion"] for item in items}

    def _up_to_date(self) -> bool:
        kube = self.live.kube
        assert kube is not None
        seen = [
            {each.name: each.resource_version for each in store.snapshot().items} for store in (kube.pods, kube.nodes)
        ]
        if seen != [self.versions(PODS), self.versions(NODES)]:
            return False
        self.live.refresh()
        return True

    def schedule(self, request: FitsRequest, workers: Sequence[Workers], name: str) -> Counter[str]:
        """Pods that the scheduler binds of those of the request, by node; `""` counts the others. They are deleted."""
        names = []
        for manifest in pods_of(request, workers, self.nodes, name):
            self.call("POST", PODS, manifest)
            names.append(manifest["metadata"]["name"])
            wait_until(lambda: decided(self.pods()[names[-1]]), LIMIT_SECONDS, f"{names[-1]} is decided")
        placed = self.pods()
        self.delete(names)
        return Counter(placed[each]["spec"].get("nodeName", "") for each in names)


def decided(pod: dict[str, Any]) -> bool:
    """Whether the scheduler has bound or refused a pod."""
    conditions = pod["status"].get("conditions") or ()
    return "nodeName" in pod["spec"] or any(each.get("reason") == "Unschedulable" for each in conditions)


@contextmanager
def fits_world(root: Path) -> Iterator[World]:
    """Run an API server, a scheduler and the watch."""
    with KubeApiServer(root) as api, kube_scheduler(api, root):
        daemon = {"kubernetes": {"enabled": "yes", "kubeconfig": api.kubeconfig}}
        live = make_cluster(Config.model_validate({"daemon": daemon}))
        live.start()
        try:
            live.wait_settled(LIMIT_SECONDS)
            yield World(api, live)
        finally:
            live.stop()
