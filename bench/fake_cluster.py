"""An API server and a thousand agents in one process: `python -m bench.fake_cluster DIRECTORY`.

It serves the data of `bench.cluster_data`: paged lists, endless watches, and every agent's snapshot on its own loopback
address. It prints its two ports. `/load?rate=200&seconds=20` sends this many pod changes a second for this long and
responds when done.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from bench.cluster_data import KINDS, VERSION, address, as_list

AT = b'"at":1763260000.0'  # of the snapshots, which must look fresh
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"
INDEX = b'"FC_TASK_INDEX":"'
SNAPSHOT_VERSION = "b.1"
BUSY_PARTS = ("gpu", "host", "container_usage", "disk_io")
LIVES = 40  # new pods alive at a time
VERSION_FIELD = b'"resourceVersion":"'


class Objects:
    """The API objects and their changes."""

    def __init__(self, directory: Path) -> None:
        self.items = {kind: (directory / kind).read_bytes().splitlines() for kind in KINDS}
        self._of_jobs = [line for line in self.items["pods"] if INDEX in line]
        self._version = VERSION

    def page(self, resource: str, query: dict[str, str]) -> bytes:
        """One page of a list."""
        items, start = self.items[resource], int(query.get("continue") or 0)
        end = start + int(query.get("limit") or len(items) or 1)
        return as_list(resource, items[start:end], str(end) if end < len(items) else "")

    def changes(self, many: int) -> Iterator[tuple[bytes, bytes]]:
        """Pod changes as watch lines, split where the time of sending is inserted.

        Of ten changes, eight are pods that show that time as their task index, one is a new pod that shows it too, and
        one is the end of such a pod.
        """
        made: list[bytes] = []
        for number, line in enumerate(islice(cycle(self._of_jobs), many)):
            if number % 10 == 5:
                made.append(_another(line, self._version))
                yield self._change(b"ADDED", made[-1])
            elif number % 10 == 9 and len(made) > LIVES:
                yield self._change(b"DELETED", made.pop(0))
            else:
                yield self._change(b"MODIFIED", line)

    def new_job(self) -> bytes:
        """Watch line of a new job."""
        self._version += 1
        meta = {"name": f"job-{self._version}", "namespace": "team-1", "uid": f"job-{self._version}"}
        job = {"metadata": meta | {"resourceVersion": str(self._version)}}
        return json.dumps({"type": "ADDED", "object": job}).encode() + b"\n"

    def _change(self, what: bytes, line: bytes) -> tuple[bytes, bytes]:
        self._version += 1
        before, _, after = line.partition(INDEX)
        head, _, rest = before.partition(VERSION_FIELD)
        version = VERSION_FIELD + b"%d" % self._version + rest[rest.index(b'"') :]
        return b'{"type":"%s","object":' % what + head + version + INDEX, after[after.index(b'"') :] + b"}\n"


def _versioned(body: bytes) -> bytes:
    return b'%s,"version":"%s"}' % (body[:-1], SNAPSHOT_VERSION.encode())


def _update(body: bytes) -> bytes:
    """Update of a busy node: the figures that an agent reads anew between two polls."""
    whole = json.loads(body)
    update = {name: whole[name] for name in ("node", "at", "agent_version", *BUSY_PARTS)}
    update |= {"version": SNAPSHOT_VERSION, "since": SNAPSHOT_VERSION, "changed": BUSY_PARTS}
    return json.dumps(update | {"collectors": whole["collectors"][:9]}, separators=(",", ":")).encode()


def _another(line: bytes, number: int) -> bytes:
    """A copy of a pod with a unique number."""
    meta = json.loads(line)["metadata"]
    name, uid = meta["name"].encode(), meta["uid"].encode()
    return line.replace(name, b"%s-%d" % (name, number)).replace(uid, b"%08d" % number + uid[8:])


class Server:
    """Serves requests."""

    def __init__(self, directory: Path) -> None:
        self._objects = Objects(directory)
        bodies = (directory / "snapshots").read_bytes().splitlines()
        self._snapshots = {address(number): _versioned(body).partition(AT)[::2] for number, body in enumerate(bodies)}
        self._updates = {address(number): _update(body).partition(AT)[::2] for number, body in enumerate(bodies)}
        self.agents = tuple(self._snapshots)
        self._watches: dict[str, set[asyncio.StreamWriter]] = {kind: set() for kind in KINDS}

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one connection until it closes."""
        try:
            while line := await reader.readline():
                while (await reader.readline()).strip():
                    pass  # headers
                url = urlsplit(line.split()[1].decode())
                await self._answer(url.path, dict(parse_qsl(url.query)), writer)
        except ConnectionError:
            pass  # the measured process has ended
        finally:
            for watches in self._watches.values():
                watches.discard(writer)
            writer.close()

    async def _answer(self, path: str, query: dict[str, str], writer: asyncio.StreamWriter) -> None:
        resource = path.rpartition("/")[2]
        if path == "/v1/snapshot":
            bodies = self._updates if query.get("since") == SNAPSHOT_VERSION else self._snapshots
            before, after = bodies[writer.get_extra_info("sockname")[0]]
            _send(writer, before + b'"at":%f' % time.time() + after)
        elif path == "/load":
            _send(writer, json.dumps(await self._load(int(query["rate"]), int(query["seconds"]))).encode())
        elif resource not in KINDS:
            writer.write(NOT_FOUND)
        elif query.get("watch") == "true":
            writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
            self._watches[resource].add(writer)
        else:
            _send(writer, self._objects.page(resource, query))
        await writer.drain()

    async def _load(self, rate: int, seconds: int) -> dict[str, int]:
        """Send pod changes at a constant rate, with a new job per ten; number of changes, and of visible ones."""
        changes = list(self._objects.changes(rate * seconds))
        began = time.monotonic()
        for number, (before, after) in enumerate(changes):
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            for watch in self._watches["pods"]:
                _tell(watch, before + b"%d" % time.monotonic_ns() + after)
            for watch in self._watches["jobs"] if number % 10 == 0 else ():
                _tell(watch, self._objects.new_job())
        return {"sent": len(changes), "shown": sum(b'"DELETED"' not in before for before, _ in changes)}


def _tell(watch: asyncio.StreamWriter, line: bytes) -> None:
    watch.write(b"%x\r\n%s\r\n" % (len(line), line))


def _send(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)


async def serve(directory: Path) -> None:
    """Serve until killed."""
    server = Server(directory)
    api = await asyncio.start_server(server.talk, "127.0.0.1", 0)
    with socket.socket() as probe:
        probe.bind(("127.80.0.1", 0))
        port = probe.getsockname()[1]
    await asyncio.start_server(server.talk, list(server.agents), port)
    print(json.dumps({"api": api.sockets[0].getsockname()[1], "agents": port}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
