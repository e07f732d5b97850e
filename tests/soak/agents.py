"""Agents of the soak test: GPU figures change on every poll; some nodes are unhealthy, some silent.

Like real agents they send what has changed since the version that the daemon has: the GPUs, unless the node fell ill or
recovered since.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.cluster_data import address
from monitor.facts.node import HEAD, PARTS, NodeSnapshot, SnapshotUpdate
from monitor.facts.storage import DiskFact
from monitor.sim.http import SimRequest, SimServer, write_response
from tests.support.snapshots import AT

NOW = re.compile(rb"1763260000\.0(?=[,}])")  # placeholder: time of the snapshot
SHIFTED = re.compile(rb"176[23]\d{6}\.\d+(?=[,}])")  # ages relative to that
LOAD = re.compile(rb'(?<="utilization_ratio":)0\.\d+(?=,)')  # utilisation of a used GPU
HANGING = 30.0  # seconds for which a silent agent keeps a connection open


class Body:
    """An update with placeholders that are filled on every request."""

    def __init__(self, update: SnapshotUpdate, began: float) -> None:
        whole = msgspec.json.encode(update)
        whole = NOW.sub(b"@at@", whole)
        whole = SHIFTED.sub(lambda at: b"%.1f" % (float(at[0]) - AT + began), whole)
        self._pieces = re.split(rb"@(at|load)@", LOAD.sub(b"@load@", whole))

    def fill(self, now: float, chance: random.Random) -> bytes:
        """The update as of now."""
        at = b"%.3f" % now
        named = {b"at": lambda: at, b"load": lambda: b"%.2f" % chance.uniform(0.05, 0.99)}
        pairs = zip(self._pieces[::2], (named[name]() for name in self._pieces[1::2]), strict=False)
        return b"".join(part for pair in pairs for part in pair) + self._pieces[-1]


class Node:
    """A node in one condition: its complete snapshot, and the changes since."""

    def __init__(self, snapshot: NodeSnapshot, version: str, began: float) -> None:
        self.version = version
        head = {name: getattr(snapshot, name) for name in HEAD}
        parts = {name: getattr(snapshot, name) for name in PARTS}
        self._complete = Body(SnapshotUpdate(**head, **parts, version=version), began)
        changes = SnapshotUpdate(**head, gpu=snapshot.gpu, version=version, since=version, changed=("gpu",))
        self._changes = Body(changes, began)

    def update(self, since: str | None, now: float, chance: random.Random) -> bytes:
        """What a client that has a version needs."""
        return (self._changes if since == self.version else self._complete).fill(now, chance)


class Agents:
    """All agents, each on its own loopback address. `ill`, `mute` and `away` are sets of addresses."""

    def __init__(self, directory: Path, chance: random.Random) -> None:
        lines = (directory / "snapshots").read_bytes().splitlines()
        began = time.time()
        snapshots = [msgspec.json.decode(line, type=NodeSnapshot) for line in lines]
        self._nodes = {address(number): _both(each, began) for number, each in enumerate(snapshots)}
        self._chance = chance
        self._server = SimServer(self._answer)
        self.addresses: Sequence[str] = tuple(self._nodes)
        self.ill: set[str] = set()
        self.mute: set[str] = set()  # accepts connections and never responds
        self.away: set[str] = set()  # closes connections

    async def start(self) -> int:
        """Listen and return the port."""
        return await self._server.start(list(self.addresses))

    async def _answer(self, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        if request.at in self.mute:
            await asyncio.sleep(HANGING)
        elif request.at in self.away:
            writer.transport.abort()
        elif request.path == "/v1/snapshot":
            node = self._nodes[request.at][request.at in self.ill]
            write_response(writer, node.update(request.query.get("since"), time.time(), self._chance))
        else:
            write_response(writer, b"{}", 404)


def _both(snapshot: NodeSnapshot, began: float) -> tuple[Node, Node]:
    """Snapshots of a node while healthy and while unhealthy.

    The data contains every problem once: a healthy node has none, an unhealthy one keeps a full disk and a lost mount.
    """
    change = msgspec.structs.replace
    calm = change(
        snapshot,
        actions=None,
        disk_io=tuple(change(io, busy_ratio=0.2, queue_length=0.5) for io in snapshot.disk_io or ()),
        probes=tuple(change(probe, ok=True, cause=None, error=None) for probe in snapshot.probes or ()),
    )
    disks = tuple(_roomy(disk) for disk in snapshot.disk or () if disk.size_bytes is not None)
    mounts = tuple(change(mount, state="ok", error=None) for mount in snapshot.mounts or ())
    return Node(change(calm, disk=disks, mounts=mounts), "well", began), Node(calm, "ill", began)


def _roomy(disk: DiskFact) -> DiskFact:
    return msgspec.structs.replace(disk, used_bytes=disk.available_bytes, inodes_used=1000)
