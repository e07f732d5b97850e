"""Runs the simulated cluster: its servers, everyday workloads and outages."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from monitor.base.threads import spawn
from monitor.sim.actions import SimActions
from monitor.sim.agents import SimAgents
from monitor.sim.api import ApiWrites, SimApiServer
from monitor.sim.cluster import SimCluster
from monitor.sim.everyday import churn, fill_cluster
from monitor.sim.http import SimRequest, SimServer, write_response
from monitor.sim.objects import SimObjects
from monitor.sim.outages import OUTAGES, Outage, OutageContext
from monitor.sim.wecom import SimRobot

STEP_SECONDS = 0.5
T = TypeVar("T")


class Simulation:
    """Runs on its own thread between start() and stop(). `call` accesses its state from other threads.

    The outages happen once after play(). `changing` lets everyday workloads come and go.
    """

    def __init__(
        self, nodes: int = 6, gpus: int = 8, outages: tuple[Outage, ...] = OUTAGES, *, changing: bool = True
    ) -> None:
        objects = SimObjects()
        self.cluster = SimCluster(objects, time.time)
        for number in range(1, nodes + 1):
            self.cluster.add_node(f"gpu{number:02d}", gpus)
        self.context = OutageContext(self.cluster)
        self._outages = outages
        self._changing = changing
        self._api = SimApiServer(objects, ApiWrites(self.cluster.delete_pod, self.cluster.cordon))
        self._agents = SimAgents(self.cluster.nodes, SimActions().act)
        self._portal = SimServer(self._answer_portal)
        self.robot = SimRobot()
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        self._began: float | None = None  # monotonic
        self._speed = 1.0
        self._active: set[str] = set()
        self.api_port = self.agents_port = self.portal_port = self.robot_port = 0

    def start(self) -> None:
        self._thread = spawn("simulation", self._loop.run_forever)
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not None:
            self._thread.join(5)
        self._loop.close()

    def play(self, speed: float = 1.0) -> None:
        """Begin the outages now; with a `speed` of 2, everything happens in half the time."""
        self._speed, self._began = speed, time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds of the story, which has not begun before play()."""
        return 0.0 if self._began is None else (time.monotonic() - self._began) * self._speed

    def call(self, do: Callable[[OutageContext], T]) -> T:
        """Result of `do`, called on the thread of the simulation. Raise what it raises."""
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(do(self.context))
            except Exception as error:  # raised in the caller
                result.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return result.result(10)

    def kubeconfig(self, directory: Path) -> Path:
        """Write a kubeconfig for the simulated API server, and return its path."""
        path = directory / "kubeconfig"
        path.write_text(
            "{apiVersion: v1, kind: Config, users: [{name: demo, user: {}}], current-context: demo,"
            f' clusters: [{{name: demo, cluster: {{server: "http://127.0.0.1:{self.api_port}"}}}}],'
            " contexts: [{name: demo, context: {cluster: demo, user: demo}}]}"
        )
        return path

    async def _start(self) -> None:
        fill_cluster(self.cluster)
        self.api_port = await self._api.start()
        self.agents_port = await self._agents.start()
        self.portal_port = await self._portal.start(["127.0.0.1"])
        self.robot_port = await self.robot.start()
        self._ticker = asyncio.create_task(self._run())

    async def _stop(self) -> None:
        self._ticker.cancel()
        for server in (self._api, self._agents, self._portal, self.robot):
            await server.stop()

    async def _run(self) -> None:
        """Advance time, and start and end outages on schedule, until cancelled."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(STEP_SECONDS / self._speed)
            at = time.monotonic()
            self.cluster.step((at - last) * self._speed)
            if self._changing:
                churn(self.cluster)
            if self._began is not None:
                self._switch_outages(self.elapsed)
            last = at

    def _switch_outages(self, elapsed: float) -> None:
        for outage in self._outages:
            due = outage.at <= elapsed < outage.at + outage.lasts
            if due and outage.name not in self._active:
                self._active.add(outage.name)
                outage.begin(self.context)
            elif not due and outage.name in self._active:
                self._active.discard(outage.name)
                outage.end(self.context)

    async def _answer_portal(self, _request: SimRequest, writer: asyncio.StreamWriter) -> None:
        status = self.context.portal_status
        write_response(
            writer, b"<h1>portal</h1>" if status == 200 else b"<h1>502 Bad Gateway</h1>", status, "text/html"
        )
