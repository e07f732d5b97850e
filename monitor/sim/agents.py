"""Agents of the simulated nodes: each on its own loopback address, all on one port."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST

from monitor.agent.metrics import AgentMetrics
from monitor.agent.versions import SnapshotVersions
from monitor.facts import NodeSnapshot
from monitor.sim.http import SimRequest, SimServer, write_response
from monitor.sim.node import SimNode
from monitor.sim.snapshot import snapshot

ActionHandler = Callable[[SimNode, SimRequest], tuple[int, bytes]]


class SimAgents:
    """Serves snapshots and metrics, and passes action requests to `act`."""

    def __init__(self, nodes: Mapping[str, SimNode], act: ActionHandler, now: Callable[[], float] = time.time) -> None:
        self._by_address = {node.address: node for node in nodes.values()}
        self._metrics = {address: AgentMetrics() for address in self._by_address}
        self._versions = {node.address: SnapshotVersions(partial(self._read, node)) for node in nodes.values()}
        self._act = act
        self._now = now
        self._encode = msgspec.json.Encoder().encode
        self._server = SimServer(self._answer)
        self.stop = self._server.stop

    async def start(self, port: int = 0) -> int:
        """Listen on the address of every node, and return the port."""
        return await self._server.start(list(self._by_address), port)

    async def _answer(self, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        node = self._by_address[request.at]
        if not node.answering:
            writer.transport.abort()
        elif request.path == "/v1/snapshot":
            since = request.query.get("since")
            reply = self._read(node) if since is None else self._versions[node.address].update(since)
            write_response(writer, self._encode(reply))
        elif request.path == "/metrics":
            text = self._metrics[node.address].render(self._read(node))
            write_response(writer, text, content_type=CONTENT_TYPE_LATEST)
        elif request.path.startswith("/v1/actions"):
            status, body = self._act(node, request)
            write_response(writer, body, status)
        else:
            write_response(writer, b"{}", 404)

    def _read(self, node: SimNode) -> NodeSnapshot:
        return snapshot(node, self._now())


def agent_address(number: int) -> str:
    """Loopback address of the agent on a node."""
    return f"127.81.{number // 250}.{1 + number % 250}"
