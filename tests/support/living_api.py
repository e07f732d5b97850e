"""An API server whose objects a test changes: changes appear in lists and are sent to watchers."""

from __future__ import annotations

import contextlib
import itertools
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.scripted_api import ScriptedApi, _Handler, answer, event, page, status

MANY = 1000  # idle watch connections of a test
Object = dict[str, Any]


class LivingApi:
    """Objects by plural kind and uid. They outlive the server that serves them."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Object]] = {}
        self._watchers: dict[str, list[queue.SimpleQueue[bytes]]] = {}
        self._versions = itertools.count(1)
        self._port = 0
        self.groups: set[str] = set()  # API groups of add-ons that are served, as v1

    @contextlib.contextmanager
    def served(self) -> Iterator[ScriptedApi]:
        """Serve the objects; later calls reuse the port."""
        with ScriptedApi([self._list], [self._watch] * MANY, groups=[self._group], port=self._port) as server:
            self._port = server.port
            yield server

    def kubeconfig(self, folder: Path) -> str:
        """Path of a kubeconfig for the server, which must be running."""
        path = folder / "kubeconfig"
        path.write_text(
            "{apiVersion: v1, kind: Config, users: [{name: u, user: {}}], current-context: c,"
            f' clusters: [{{name: k, cluster: {{server: "http://127.0.0.1:{self._port}"}}}}],'
            " contexts: [{name: c, context: {cluster: k, user: u}}]}"
        )
        return str(path)

    def put(self, plural: str, item: Object) -> None:
        """Create or update an object."""
        kept = self._objects.setdefault(plural, {})
        meta = item["metadata"] | {"resourceVersion": str(next(self._versions))}
        kind = "MODIFIED" if meta["uid"] in kept else "ADDED"
        kept[meta["uid"]] = item | {"metadata": meta}
        self._tell(plural, kind, kept[meta["uid"]])

    def delete(self, plural: str, uid: str) -> None:
        """Delete an object."""
        item = self._objects[plural].pop(uid)
        self._tell(
            plural, "DELETED", item | {"metadata": item["metadata"] | {"resourceVersion": str(next(self._versions))}}
        )

    def _tell(self, plural: str, kind: str, item: Object) -> None:
        for watcher in self._watchers.get(plural, ()):
            watcher.put(event(kind, item))

    def _list(self, handler: _Handler) -> None:
        items = list(self._objects.get(_plural(handler), {}).values())
        query = dict(parse_qsl(urlsplit(handler.path).query))
        start = int(query.get("continue", "0"))
        end = start + int(query["limit"]) if "limit" in query else len(items)
        more = str(end) if end < len(items) else None
        page(*items[start:end], rv=str(next(self._versions)), more=more)(handler)

    def _group(self, handler: _Handler) -> None:
        served = (
            answer({"versions": [{"version": "v1"}]}) if _plural(handler) in self.groups else status(404, "NotFound")
        )
        served(handler)

    def _watch(self, handler: _Handler) -> None:
        """Start the watch with all current objects, so that no change between list and watch is lost."""
        plural = _plural(handler)
        told: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._watchers.setdefault(plural, []).append(told)
        handler.begin()
        for item in list(self._objects.get(plural, {}).values()):
            handler.send(event("MODIFIED", item))
        while not handler.server.api.closing.is_set():
            with contextlib.suppress(queue.Empty):
                handler.send(told.get(timeout=0.02))


def _plural(handler: _Handler) -> str:
    return handler.path.partition("?")[0].rpartition("/")[2]


# Objects


def kube_pod(name: str, node: str | None = None, gpus: int = 0, **meta: object) -> Object:
    """A pod: running if it has a node, otherwise pending."""
    limits = {"resources": {"requests": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    return {
        "metadata": {"name": name, "namespace": "lab", "uid": f"uid-{name}", **meta},
        "spec": {"nodeName": node, "containers": [{"name": "main", **limits}]},
        "status": {"phase": "Running" if node else "Pending"},
    }


def agent_pod(name: str, node: str, ip: str | None, phase: str = "Running") -> Object:
    """Pod of an agent."""
    item = kube_pod(name, node, labels={"app": "gpuwarden-agent"})
    return item | {"status": {"phase": phase, "podIP": ip}}


def kube_node(name: str, gpus: int = 0, uid: str | None = None) -> Object:
    """A ready node."""
    amounts = {"nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "uid": uid or f"uid-{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
