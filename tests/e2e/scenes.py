"""Scenes in the lab's cluster: a test's own nodes, pods and other objects, deleted on exit."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from tests.lab.api import Api
from tests.lab.lab import Lab
from tests.lab.manifests import pod_manifest
from tests.support import wait_until


class Scene:
    """A namespace and a node pool.

    Pods run in the namespace and select the pool, so scenes are isolated from each other.
    """

    def __init__(self, lab: Lab, name: str) -> None:
        self._lab = lab
        self._undo = ExitStack()
        self.api = Api(lab.kubeconfig)
        self.name = f"{name}-{secrets.token_hex(3)}"

    def __enter__(self) -> Self:
        self._undo.callback(self.api.close)
        self.create("/api/v1/namespaces", {"metadata": {"name": self.name}})
        self._undo.callback(self.api.delete, self.path("v1", "pods"))  # regardless of creator
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._undo.close()

    def create(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create an object in a collection; it is deleted with the scene."""
        made = self.api.create(path, body)
        self._undo.callback(self.api.delete, f"{path}/{body['metadata']['name']}")
        return made

    def create_here(self, version: str, plural: str, name: str, **fields: Any) -> Any:
        """Create an object in the scene's namespace, by API version (`v1`, `batch/v1`), plural and name."""
        metadata = {"name": name, **fields.pop("metadata", {})}
        return self.create(self.path(version, plural), {"apiVersion": version, "metadata": metadata, **fields})

    def path(self, version: str, plural: str, name: str = "") -> str:
        root = "/apis" if "/" in version else "/api"
        return f"{root}/{version}/namespaces/{self.name}/{plural}" + (f"/{name}" if name else "")

    def node(
        self,
        name: str,
        gpus: int,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
    ) -> str:
        """Add a node to the pool, or to another one named by its labels, and return its full name."""
        full = f"{self.name}-{name}"
        self._undo.callback(self._lab.fake_nodes.remove, full)
        self._lab.add_fake_node(full, gpus, {"pool": self.name, **(labels or {})}, taints)
        return full

    def pod(self, name: str, *, gpus: int = 0, user: str | None = None, node: str | None = None, **fields: Any) -> Any:
        """Create a pod: bound to a node of the scene, or for the scheduler to place in the pool.

        `fields` are those of `pod_manifest`; `metadata` extends the pod's metadata.
        """
        metadata = fields.pop("metadata", {})
        where = {"nodeName": node} if node else {"nodeSelector": {"pool": self.name}}
        labels = {**({"userName": user} if user else {}), **fields.pop("labels", {})}
        spec = {**where, **fields.pop("spec", {})}
        manifest = pod_manifest(name, namespace=self.name, gpus=gpus, node=None, labels=labels, spec=spec, **fields)
        manifest["metadata"] |= metadata
        made = self.create(self.path("v1", "pods"), manifest)
        if "finalizers" in metadata:
            self._undo.callback(self.api.patch, self.path("v1", "pods", name), {"metadata": {"finalizers": None}})
        return made

    def read(self, name: str) -> Any:
        """The current pod."""
        return self.api.get(self.path("v1", "pods", name))

    def delete(self, name: str) -> None:
        """Delete a pod immediately."""
        self.api.delete(self.path("v1", "pods", name))

    def wait_placed(self, name: str) -> str:
        """Wait until the scheduler has placed a pod and return its node."""
        wait_until(lambda: self.read(name)["spec"].get("nodeName"), 20, f"{name} is placed")
        return str(self.read(name)["spec"]["nodeName"])

    def wait_refused(self, name: str) -> str:
        """Wait until the scheduler reports that it cannot place a pod and return its message."""
        wait_until(lambda: self._refusals(name), 20, f"{name} is refused")
        return self._refusals(name)[0]

    def _refusals(self, name: str) -> list[str]:
        conditions = self.read(name)["status"].get("conditions", ())
        return [each["message"] for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]
