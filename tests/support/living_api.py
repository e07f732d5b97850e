"""An API server whose objects a test changes: what is put into it is listed, and told to whoever watches."""

from __future__ import annotations

import contextlib
import itertools
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.scripted_api import ScriptedApi, _Handler, event, page

MANY = 1000  # watches, until a test ends
Object = dict[str, Any]


class LivingApi:
    """The objects, by the plural of their kind and their uid. They outlive the server that serves them."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[str, Object]] = {}
        self._watchers: dict[str, list[queue.SimpleQueue[bytes]]] = {}
        self._versions = itertools.count(1)
        self._port = 0

    @contextlib.contextmanager
    def served(self) -> Iterator[ScriptedApi]:
        """Serve them; the next time, on the same port."""
        with ScriptedApi([self._list], [self._watch] * MANY, port=self._port) as server:
            self._port = server.port
            yield server

    def kubeconfig(self, folder: Path) -> str:
        """Write a kubeconfig for the server, which has to be there, and return its path."""
        path = folder / "kubeconfig"
        path.write_text(
            "{apiVersion: v1, kind: Config, users: [{name: u, user: {}}], current-context: c,"
            f' clusters: [{{name: k, cluster: {{server: "http://127.0.0.1:{self._port}"}}}}],'
            " contexts: [{name: c, context: {cluster: k, user: u}}]}"
        )
        return str(path)

    def put(self, plural: str, item: Object) -> None:
        """Create an object, or change it."""
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
        items = self._objects.get(_plural(handler), {}).values()
        page(*items, rv=str(next(self._versions)))(handler)

    def _watch(self, handler: _Handler) -> None:
        """A change between a list and its watch is told too: the watch begins with all there is."""
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
    """Return a pod: running where it has a node, else waiting."""
    limits = {"resources": {"requests": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    return {
        "metadata": {"name": name, "namespace": "lab", "uid": f"uid-{name}", **meta},
        "spec": {"nodeName": node, "containers": [{"name": "main", **limits}]},
        "status": {"phase": "Running" if node else "Pending"},
    }


def agent_pod(name: str, node: str, ip: str | None, phase: str = "Running") -> Object:
    """Return the pod of an agent."""
    item = kube_pod(name, node, labels={"app": "gpuwarden-agent"})
    return item | {"status": {"phase": phase, "podIP": ip}}


def kube_node(name: str, gpus: int = 0, uid: str | None = None) -> Object:
    """Return a node that is ready."""
    amounts = {"nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": name, "uid": uid or f"uid-{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
