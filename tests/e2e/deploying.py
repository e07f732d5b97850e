"""gpuwarden in the lab as users install it: the image and the chart, and nothing else."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.actions.plan import UserActionOutcome
from monitor.facts import NodeSnapshot
from monitor.facts.cluster import ClusterView
from tests.deploy.helm import Object, render
from tests.lab.api import Api
from tests.lab.lab import Lab
from tests.lab.layout import NODE
from tests.nvml import FakeNvml, build
from tests.support import free_port, wait_until

VERSION = "1.20.2"
NAMESPACE = f"gpuwarden-{secrets.token_hex(3)}"  # the previous run's may still be terminating
APPLY = "application/apply-patch+yaml"
TOKENS = {"agentToken": "a" * 30, "pageToken": "p" * 30, "metricsToken": "m" * 30}
QUICK = ("gpu", "gpu_processes", "pod_devices", "containers", "shm", "disk")
RUNNING_LIMIT = 60


class Applier:
    """Applies objects with strict field validation."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._applied: list[str] = []
        self._plural = cache(self._look_up)

    def apply(self, objects: list[Object], *, dry_run: bool = False) -> None:
        """Apply objects; with `dry_run`, only validate them."""
        for each in objects:
            path = self.path(each)
            query = "?fieldManager=chart&force=true" + ("&dryRun=All" if dry_run else "")
            answer = self.api.send("PATCH", path + query, each, APPLY)
            assert answer.ok, f"{path}: {answer.text}"
            if not dry_run and path not in self._applied:
                self._applied.append(path)

    def path(self, each: Object) -> str:
        """API path of an object."""
        version, metadata = each["apiVersion"], each["metadata"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural, namespaced = self._plural(root, each["kind"])
        place = f"/namespaces/{metadata['namespace']}" if namespaced else ""
        return f"{root}{place}/{plural}/{metadata['name']}"

    def delete(self) -> None:
        """Delete applied objects in reverse order."""
        for path in reversed(self._applied):
            self.api.delete(path)

    def _look_up(self, root: str, kind: str) -> tuple[str, bool]:
        for each in self.api.get(root)["resources"]:
            if each["kind"] == kind and "/" not in each["name"]:
                return each["name"], each["namespaced"]
        return pytest.fail(f"{root} has no {kind}")


@dataclass(frozen=True)
class Deployed:
    """A running installation."""

    lab: Lab
    applier: Applier
    nvml: FakeNvml
    values: Mapping[str, Any]
    address: str
    agent_port: int
    page_port: int

    def upgrade(self, **values: Any) -> None:
        """Apply the chart again with changed values."""
        self.applier.apply(render({**self.values, **values}, namespace=NAMESPACE, version=VERSION))

    def page(
        self, method: str, path: str, body: Any = None, token: str | None = TOKENS["pageToken"]
    ) -> tuple[int, str]:
        """GET from the page."""
        return self._ask(self.page_port, method, path, body, token)

    def agent(self, path: str, token: str | None = TOKENS["agentToken"]) -> tuple[int, str]:
        """GET from the agent."""
        return self._ask(self.agent_port, "GET", path, None, token)

    def view(self) -> ClusterView:
        status, body = self.page("GET", "/v1/view")
        assert status == 200, body
        return msgspec.json.decode(body, type=ClusterView)

    def snapshot(self) -> NodeSnapshot:
        """The agent's snapshot."""
        status, body = self.agent("/v1/snapshot")
        assert status == 200, body
        return msgspec.json.decode(body, type=NodeSnapshot)

    def act(self, action: str, **wanted: Any) -> UserActionOutcome:
        """Run an action as an administrator of the page."""
        status, body = self.page("POST", f"/v1/actions/{action}", wanted)
        assert status == 200, body
        return msgspec.json.decode(body, type=UserActionOutcome)

    def pods(self, component: str) -> list[Any]:
        """Pods of the agent or the daemon."""
        label = f"app.kubernetes.io/name%3Dgpuwarden-{component}"
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={label}"
        found: list[Any] = self.applier.api.get(path)["items"]
        return found

    def log(self, component: str) -> str:
        """Last log lines of the agent or the daemon, and their Kubernetes events."""
        parts = []
        for pod in self.pods(component):
            events = self.applier.api.get(f"/api/v1/namespaces/{NAMESPACE}/events")["items"]
            uid = pod["metadata"]["uid"]
            parts += [each["message"] for each in events if each["involvedObject"].get("uid") == uid]
            parts += self.lab.engine.logs_of(uid)
        return "\n".join(parts)

    def _ask(self, port: int, method: str, path: str, body: Any, token: str | None) -> tuple[int, str]:
        connection = HTTPConnection(self.address, port, timeout=60)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()


@contextmanager
def deployed(lab: Lab, image: str, directory: Path) -> Iterator[Deployed]:
    """Install the chart and yield it once both components are ready."""
    nvml = FakeNvml(directory / "nvml", gpus=len(lab.gpu_ids))
    for index, uuid in enumerate(lab.gpu_ids):
        nvml.gpu(index, uuid=uuid)
    api = Api(lab.kubeconfig)
    applier = Applier(api)
    address = node_address(api)
    ports = free_port(address), free_port(address)
    values = lab_values(lab, image, directory, address, *ports)
    found = Deployed(lab, applier, nvml, values, address, *ports)
    try:
        applier.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        found.upgrade()
        for component in ("agent", "daemon"):
            wait_ready(found, component)
        yield found
    finally:
        applier.delete()
        wait_until(lambda: gone(found), 90, "the pods are gone")
        api.close()


def gone(found: Deployed) -> bool:
    """Whether no pod is left; deletes them, because the garbage collector is slow after an API server restart."""
    left = found.pods("agent") + found.pods("daemon")
    for each in left:
        if "deletionTimestamp" not in each["metadata"]:
            found.applier.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{each['metadata']['name']}")
    return not left


def node_address(api: Api) -> str:
    """Node address, shared by pods in the host network."""
    addresses = api.get(f"/api/v1/nodes/{NODE}")["status"]["addresses"]
    return next(str(each["address"]) for each in addresses if each["type"] == "InternalIP")


def lab_values(lab: Lab, image: str, directory: Path, address: str, agent_port: int, page_port: int) -> dict[str, Any]:
    """Values for the lab: no pod network, no kube-proxy, no registry, own directories."""
    repository, _, tag = image.rpartition(":")
    host, _, port = lab.api_address.rpartition(":")
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "secrets": TOKENS,
        "agent": {
            "address": address,
            "port": agent_port,
            "driver": {"from": "host", "library": str(build())},
            "host": {
                "propagation": "None",
                "kubelet": str(lab.kubelet_root),
                **lab.engine.chart_values(),
                "state": str(directory / "agent-state"),
            },
            "extraEnv": [{"name": "FAKE_NVML_CONTROL", "value": f"/host{directory / 'nvml'}"}],
        },
        "daemon": {
            "hostNetwork": True,
            "address": address,
            "port": page_port,
            "persistence": {"enabled": False},
            "extraEnv": [
                {"name": "KUBERNETES_SERVICE_HOST", "value": host},
                {"name": "KUBERNETES_SERVICE_PORT", "value": port},
            ],
        },
        "config": {
            "agent": {"collectors": {name: {"interval": "1s"} for name in QUICK}},
            "daemon": {
                "cycle": "1s",
                "agents": {"interval": "1s"},
                "gpu": {"settle": "2s", "idle_after": "2s"},
            },
        },
    }


def wait_ready(found: Deployed, component: str) -> None:
    """Wait until a component's pod is ready; fail with its log otherwise."""

    def ready() -> bool:
        conditions = [each for pod in found.pods(component) for each in pod["status"].get("conditions", ())]
        return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)

    try:
        wait_until(ready, RUNNING_LIMIT, f"the {component} is ready")
    except BaseException as error:
        error.add_note(found.log(component))
        raise
