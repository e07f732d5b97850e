"""Simulated Kubernetes API server: lists, watches, deletions, evictions and cordons."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from monitor.sim.http import SimRequest, SimServer, start_chunked_response, write_chunk, write_response
from monitor.sim.objects import Object, SimObjects

# Path of each group and version, and its plurals.
GROUPS = {
    "/api/v1": (
        "pods",
        "nodes",
        "events",
        "namespaces",
        "resourcequotas",
        "persistentvolumeclaims",
        "persistentvolumes",
    ),
    "/apis/apps/v1": ("replicasets", "deployments", "statefulsets", "daemonsets"),
    "/apis/batch/v1": ("jobs", "cronjobs"),
    "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/coordination.k8s.io/v1": ("leases",),
}
DISCOVERED = {"policy": "v1", "apps": "v1", "batch": "v1"}


@dataclass(frozen=True)
class ApiWrites:
    """Effects of writes on the simulated cluster. Each returns whether the object exists."""

    delete_pod: Callable[[str, str, float | None], bool]
    cordon: Callable[[str, bool], bool]


class SimApiServer:
    """Serves objects over the Kubernetes API."""

    def __init__(self, objects: SimObjects, writes: ApiWrites) -> None:
        self._objects = objects
        self._writes = writes
        self._server = SimServer(self._answer)
        self.stop = self._server.stop

    async def start(self) -> int:
        """Listen on loopback, and return the port."""
        return await self._server.start(["127.0.0.1"])

    async def _answer(self, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        if request.path == "/version":
            write_response(writer, b'{"major":"1","minor":"30","gitVersion":"v1.30.0-simulated"}')
        elif (group := request.path.removeprefix("/apis/")) in DISCOVERED:
            version = DISCOVERED[group]
            write_response(writer, msgspec.json.encode({"name": group, "versions": [{"version": version}]}))
        elif request.method == "GET":
            await self._read(request, writer)
        else:
            self._write(request, writer)

    async def _read(self, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        base, plural, namespace, name = _parts(request.path)
        if plural not in GROUPS.get(base, ()):
            _refuse(writer, 404, "NotFound", "the server could not find the requested resource")
        elif name is not None:
            item = self._objects.named(plural, namespace, name)
            if item is None:
                _refuse(writer, 404, "NotFound", f'{plural} "{name}" not found')
            else:
                write_response(writer, msgspec.json.encode(item))
        elif request.query.get("watch") == "true":
            await self._watch(plural, request, writer)
        else:
            items = [item for item in self._objects.items(plural) if _selected(item, namespace, request.query)]
            meta = {"resourceVersion": str(self._objects.version)}
            write_response(
                writer, msgspec.json.encode({"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items})
            )

    async def _watch(self, plural: str, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        missed = self._objects.since(plural, int(request.query.get("resourceVersion") or 0))
        if missed is None:
            _refuse(writer, 410, "Expired", "too old resource version")
            return
        start_chunked_response(writer)
        for line in missed:
            write_chunk(writer, line)
        end = self._objects.watch(plural, lambda line: write_chunk(writer, line))
        try:
            seconds = min(float(request.query.get("timeoutSeconds") or 300), 300)
            for _ in range(int(seconds * 2)):
                if writer.is_closing():
                    return
                await asyncio.sleep(0.5)
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        finally:
            end()

    def _write(self, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        _, plural, namespace, name = _parts(request.path.removesuffix("/eviction"))
        if plural == "leases":
            self._write_lease(request, writer, namespace or "", name)
            return
        found = False
        if plural == "pods" and name and request.method in ("DELETE", "POST"):
            found = self._writes.delete_pod(namespace or "", name, _grace(request.body))
        elif plural == "nodes" and name and request.method == "PATCH":
            spec = msgspec.json.decode(request.body).get("spec", {})
            found = self._writes.cordon(name, bool(spec.get("unschedulable")))
        if found:
            write_response(writer, b'{"kind":"Status","apiVersion":"v1","status":"Success"}')
        else:
            _refuse(writer, 404, "NotFound", f'{plural} "{name}" not found')

    def _write_lease(self, request: SimRequest, writer: asyncio.StreamWriter, namespace: str, name: str | None) -> None:
        """Create a Lease, or replace the given resource version of it."""
        lease = msgspec.json.decode(request.body)
        name = name or lease["metadata"]["name"]
        current = self._objects.named("leases", namespace, name)
        version = current["metadata"]["resourceVersion"] if current is not None else None
        if version != lease["metadata"].get("resourceVersion"):
            _refuse(writer, 409, "Conflict", f'leases "{name}": the object has been modified')
        else:
            meta = lease["metadata"] | {"namespace": namespace, "uid": f"lease-{namespace}-{name}"}
            write_response(writer, msgspec.json.encode(self._objects.put("leases", lease | {"metadata": meta})))


def _parts(path: str) -> tuple[str, str, str | None, str | None]:
    """Group and version, plural, namespace and name in a path."""
    segments = path.strip("/").split("/")
    size = 2 if segments[0] == "api" else 3
    base, rest = "/" + "/".join(segments[:size]), segments[size:]
    namespace = None
    if len(rest) >= 3 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    return base, rest[0] if rest else "", namespace, rest[1] if len(rest) > 1 else None


def _selected(item: Object, namespace: str | None, query: dict[str, str]) -> bool:
    if namespace is not None and item["metadata"].get("namespace") != namespace:
        return False
    name, _, wanted = query.get("fieldSelector", "").partition("=")
    if name == "spec.nodeName":
        return bool(item.get("spec", {}).get("nodeName") == wanted)
    return True


def _grace(body: bytes) -> float | None:
    """Grace period in the body of a deletion or eviction."""
    try:
        content = msgspec.json.decode(body) if body else {}
    except msgspec.MsgspecError:
        return None
    options = content.get("deleteOptions") or content
    seconds = options.get("gracePeriodSeconds")
    return float(seconds) if seconds is not None else None


def _refuse(writer: asyncio.StreamWriter, status: int, reason: str, message: str) -> None:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message}
    write_response(writer, msgspec.json.encode(body | {"code": status}), status)
