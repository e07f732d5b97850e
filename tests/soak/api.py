"""API server of the soak test: paged lists, resumable watches, and faults."""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from bench.cluster_data import KINDS
from monitor.sim.http import SimRequest, SimServer, start_chunked_response, write_chunk, write_response
from monitor.sim.objects import Object, SimObjects

LISTS = 4  # lists being read page by page
BEAT = 0.25


class Forgetful(SimObjects):
    """Objects whose history can be dropped: resuming watchers must list again."""

    def __init__(self) -> None:
        super().__init__()
        self._forgotten = 0

    def forget(self) -> None:
        self._forgotten = self.version

    def since(self, plural: str, version: int) -> Iterator[bytes] | None:
        return super().since(plural, version) if version >= self._forgotten else None


class Api:
    """Serves objects over HTTP on loopback."""

    def __init__(self, objects: SimObjects) -> None:
        self._objects = objects
        self._lists: OrderedDict[str, list[Object]] = OrderedDict()  # snapshots at the time of the first page
        self._watches: list[asyncio.StreamWriter] = []
        self._server = SimServer(self._answer)

    async def start(self) -> int:
        """Listen and return the port."""
        return await self._server.start(["127.0.0.1"])

    def drop_a_watch(self, chance: random.Random) -> None:
        """Break off one watch mid-stream, like a crashed proxy."""
        if self._watches:
            chance.choice(self._watches).transport.abort()

    async def _answer(self, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        resource = request.path.rpartition("/")[2]
        if resource not in KINDS:
            _refuse(writer, 404, "NotFound")
        elif request.query.get("watch") == "true":
            await self._watch(resource, request, writer)
        else:
            self._page(resource, request, writer)

    def _page(self, resource: str, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        """One page of a list; all pages of a list share the snapshot that `continue` names."""
        version, _, start = request.query.get("continue", "").partition("/")
        if not version:
            version = str(self._objects.version)
            self._lists[f"{resource}/{version}"] = self._objects.items(resource)
            while len(self._lists) > LISTS:
                self._lists.popitem(last=False)
        items = self._lists.get(f"{resource}/{version}")
        if items is None:
            _refuse(writer, 410, "Expired")
            return
        begin = int(start or 0)
        end = begin + int(request.query.get("limit") or len(items) or 1)
        meta = {"resourceVersion": version, "continue": f"{version}/{end}" if end < len(items) else ""}
        page = {"kind": f"{KINDS[resource]}List", "apiVersion": "v1", "metadata": meta, "items": items[begin:end]}
        write_response(writer, msgspec.json.encode(page))

    async def _watch(self, resource: str, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        missed = self._objects.since(resource, int(request.query.get("resourceVersion") or 0))
        if missed is None:
            _refuse(writer, 410, "Expired")
            return
        start_chunked_response(writer)
        for line in missed:
            write_chunk(writer, line)
        end = self._objects.watch(resource, lambda line: None if writer.is_closing() else write_chunk(writer, line))
        self._watches.append(writer)
        try:
            for _ in range(int(float(request.query.get("timeoutSeconds") or 300) / BEAT)):
                if writer.is_closing():
                    return
                await asyncio.sleep(BEAT)
                await writer.drain()
            write_chunk(writer, self._bookmark(resource))
            writer.write(b"0\r\n\r\n")
        finally:
            end()
            self._watches.remove(writer)

    def _bookmark(self, resource: str) -> bytes:
        """Bookmark line of a watch, for kinds without recent events."""
        item = {
            "kind": KINDS[resource],
            "apiVersion": "v1",
            "metadata": {"resourceVersion": str(self._objects.version)},
        }
        return msgspec.json.encode({"type": "BOOKMARK", "object": item}) + b"\n"


def _refuse(writer: asyncio.StreamWriter, status: int, reason: str) -> None:
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason}
    write_response(writer, msgspec.json.encode(said | {"code": status}), status)
