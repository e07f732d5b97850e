"""Scenes in the lab's cluster: nodes, pods and queues of a test's own, which are gone when the scene is left."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
import yaml

from tests.lab.lab import Lab
from tests.lab.manifests import pod_manifest
from tests.support import wait_until

MERGE_PATCH = "application/merge-patch+json"
NOW = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}  # no kubelet stands behind a node of a scene
EXTENSIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VOLCANO = "scheduling.volcano.sh/v1beta1"
KUEUE = "kueue.x-k8s.io/v1beta1"
# What Volcano and Kueue install, reduced to what the API server needs to know: (version, plural, kind, scope).
ADD_ONS = (
    (VOLCANO, "queues", "Queue", "Cluster"),
    (VOLCANO, "podgroups", "PodGroup", "Namespaced"),
    (KUEUE, "clusterqueues", "ClusterQueue", "Cluster"),
    (KUEUE, "localqueues", "LocalQueue", "Namespaced"),
    (KUEUE, "workloads", "Workload", "Namespaced"),
)


class Api:
    """The API server as an administrator's program sees it: paths and JSON. Used from one thread."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._url = cluster["server"]
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = cluster["certificate-authority"]
        self._session.headers["Authorization"] = f"Bearer {config['users'][0]['user']['token']}"

    def send(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> requests.Response:
        """Send one request. Raise RequestException if there is no answer."""
        headers = {"Content-Type": kind}
        return self._session.request(method, self._url + path, json=body, headers=headers, timeout=10)

    def get(self, path: str) -> Any:
        return _checked(self.send("GET", path)).json()

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        return _checked(self.send("POST", path, body)).json()

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        _checked(self.send("PATCH", path, body, MERGE_PATCH))

    def delete(self, path: str) -> None:
        """Delete an object, at once, if it is there."""
        answer = self.send("DELETE", path, NOW)
        if answer.status_code != requests.codes.not_found:
            _checked(answer)

    def close(self) -> None:
        self._session.close()


def _checked(answer: requests.Response) -> requests.Response:
    assert answer.ok, f"{answer.request.method} {answer.request.path_url}: {answer.text}"
    return answer


class Scene:
    """A namespace and a pool of nodes. Pods run in the namespace and want the pool, so that no scene sees another."""

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab = lab
        self._undo = ExitStack()
        self.api = Api(lab.kubeconfig)
        self.name = f"{name}-{secrets.token_hex(3)}"

    def __enter__(self) -> Self:
        self._undo.callback(self.api.close)
        self.create("/api/v1/namespaces", {"metadata": {"name": self.name}})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._undo.close()

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create an object in a collection and return it. It is deleted when the scene is left."""
        made = self.api.create(path, body)
        self._undo.callback(self.api.delete, f"{path}/{body['metadata']['name']}")
        return made

    def create_here(self, version: str, plural: str, name: str, **fields: Any) -> Any:
        """Create an object in the scene's namespace: of an API version (`v1`, `batch/v1`), a plural and a name."""
        kinds = {each: kind for _, each, kind, _ in ADD_ONS}
        typed = {"apiVersion": version, "kind": kinds[plural]} if plural in kinds else {}
        metadata = {"name": name, **fields.pop("metadata", {})}
        return self.create(self.path(version, plural), {**typed, "metadata": metadata, **fields})

    def path(self, version: str, plural: str, name: str = "") -> str:
        root = "/apis" if "/" in version else "/api"
        return f"{root}/{version}/namespaces/{self.name}/{plural}" + (f"/{name}" if name else "")

    def node(self, name: str, gpus: int, taints: Sequence[Mapping[str, str]] = (), **labels: str) -> str:
        """Add a node to the pool and return its full name."""
        full = f"{self.name}-{name}"
        self._undo.callback(self._lab.fake_nodes.remove, full)
        self._lab.add_fake_node(full, gpus, {"pool": self.name, **labels}, taints)
        return full

    def pod(self, name: str, *, gpus: int = 0, user: str | None = None, node: str | None = None, **fields: Any) -> Any:
        """Create a pod: on a node of the scene, past the scheduler, or for the scheduler to place in the pool.

        `fields` are those of `pod_manifest`; `metadata` adds to the pod's own.
        """
        metadata = fields.pop("metadata", {})
        where = {"nodeName": node} if node else {"nodeSelector": {"pool": self.name}}
        labels = {**({"userName": user} if user else {}), **fields.pop("labels", {})}
        spec = {**where, **fields.pop("spec", {})}
        manifest = pod_manifest(name, namespace=self.name, gpus=gpus, node=None, labels=labels, spec=spec, **fields)
        manifest["metadata"] |= metadata
        if metadata.get("finalizers"):
            made = self.create(self.path("v1", "pods"), manifest)
            self._undo.callback(self.api.patch, self.path("v1", "pods", name), {"metadata": {"finalizers": None}})
            return made
        return self.create(self.path("v1", "pods"), manifest)

    def read(self, name: str) -> Any:
        """Return a pod as it is now."""
        return self.api.get(self.path("v1", "pods", name))

    def delete(self, name: str) -> None:
        """Delete a pod, at once."""
        self.api.delete(self.path("v1", "pods", name))

    def wait_placed(self, name: str) -> str:
        """Wait until the scheduler has placed a pod, and return its node."""
        wait_until(lambda: self.read(name)["spec"].get("nodeName"), 20, f"{name} is placed")
        return str(self.read(name)["spec"]["nodeName"])

    def wait_refused(self, name: str) -> str:
        """Wait until the scheduler has said that it cannot place a pod, and return its words."""
        wait_until(lambda: self._refusals(name), 20, f"{name} is refused")
        return self._refusals(name)[0]

    def _refusals(self, name: str) -> list[str]:
        conditions = self.read(name)["status"].get("conditions", ())
        return [each["message"] for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]


@contextmanager
def add_ons(lab: Lab) -> Iterator[None]:
    """Let the API server know the objects of Volcano and Kueue for a while."""
    api = Api(lab.kubeconfig)
    try:
        for version, plural, kind, scope in ADD_ONS:
            _install(api, version, plural, kind, scope)
        for version, plural, _, _ in ADD_ONS:
            path = f"/apis/{version}/{plural}"
            wait_until(lambda path=path: api.send("GET", path).ok, 20, f"{path} is served")  # type: ignore[misc]
        yield
    finally:
        for version, plural, _, _ in ADD_ONS:
            api.delete(f"{EXTENSIONS}/{plural}.{version.partition('/')[0]}")
        api.close()


def _install(api: Api, version: str, plural: str, kind: str, scope: str) -> None:
    group, _, number = version.partition("/")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    versions = [{"name": number, "served": True, "storage": True, "schema": schema}]
    spec = {"group": group, "scope": scope, "names": names, "versions": versions}
    body = {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}
    # A run before this one may have left it, or its removal may still be under way.
    wait_until(lambda: api.send("POST", EXTENSIONS, body).ok or _stays(api, plural, group), 20, f"{plural}.{group}")


def _stays(api: Api, plural: str, group: str) -> bool:
    answer = api.send("GET", f"{EXTENSIONS}/{plural}.{group}")
    return answer.ok and "deletionTimestamp" not in answer.json()["metadata"]
