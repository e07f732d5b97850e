"""Polling one agent: complete snapshots, and only what has changed.

A node with 8 GPUs, 10 pods and 60 images, served by the agent's own HTTP server in another process, and polled by the
daemon's own client, without pauses. *Complete*: a request without a version on a new connection, as daemons of earlier
versions send it. *Busy*: figures of GPUs, host, containers and disks differ at every poll. *Unchanged*: only collectors
have run. CPU is the median of alternating rounds.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.process import cpu_seconds
from bench.report import Goal, Report
from monitor.cluster.agents.client import SnapshotClient
from monitor.cluster.agents.snapshot import SnapshotFollower, decode_snapshot

POLLS, ROUNDS = 300, 7
TIMEOUT_SECONDS = 30.0
COLUMNS = ("", "bytes", "daemon, µs of CPU", "agent, µs of CPU")


@dataclass(frozen=True)
class PollCost:
    """Bytes of a response, and CPU seconds of a poll."""

    bytes: float
    daemon: float
    agent: float

    def row(self, name: str) -> tuple[str, ...]:
        return name, f"{self.bytes:.0f}", f"{1e6 * self.daemon:.0f}", f"{1e6 * self.agent:.0f}"


class Polled:
    """An agent in another process and the ways to poll it."""

    def __init__(self, pid: int, port: int) -> None:
        self._pid = pid
        self._target = f"127.0.0.1:{port}"
        self._client = SnapshotClient(TIMEOUT_SECONDS, None)
        self._keeping = SnapshotClient(TIMEOUT_SECONDS, None, keep_connections=True)
        self._follower = SnapshotFollower()
        self._bytes = 0

    def poll_complete(self) -> None:
        decode_snapshot(self._count(self._client(self._target)))

    def poll(self) -> None:
        self._follower.read(lambda since: self._count(self._keeping(self._target, since)))

    def cost(self, poll: Callable[[], None]) -> PollCost:
        """Mean cost of many polls."""
        poll()
        self._bytes = 0
        agent, daemon = cpu_seconds(self._pid), time.process_time()
        for _ in range(POLLS):
            poll()
        daemon, agent = time.process_time() - daemon, cpu_seconds(self._pid) - agent
        return PollCost(self._bytes / POLLS, daemon / POLLS, agent / POLLS)

    def _count(self, body: bytes) -> bytes:
        self._bytes += len(body)
        return body


def run() -> Report:
    """Measure everything and return the report."""
    with agent("busy") as busy, agent("unchanged") as still:
        ways = [(busy, busy.poll_complete), (busy, busy.poll), (still, still.poll)]
        rounds = [[polled.cost(poll) for polled, poll in ways] for _ in range(ROUNDS)]
    complete, changed, unchanged = (_median(costs) for costs in zip(*rounds, strict=True))
    goals = (
        Goal("poll_unchanged_bytes", unchanged.bytes, 2048, "response of an unchanged node"),
        Goal("poll_unchanged_ratio", unchanged.daemon / complete.daemon, 0.5, "daemon's CPU, unchanged / complete"),
        Goal("poll_busy_ratio", changed.daemon / complete.daemon, 0.8, "the same of a busy node"),
        Goal("poll_agent_ratio", unchanged.agent / complete.agent, 0.7, "agent's CPU, unchanged / complete"),
    )
    rows = [complete.row("complete"), changed.row("busy"), unchanged.row("unchanged")]
    how = (__doc__ or "").partition("\n\n")[2].strip()
    return Report("poll", "Polling an agent", how, goals, (("One poll", COLUMNS, rows),))


@contextlib.contextmanager
def agent(kind: str) -> Iterator[Polled]:
    """Run an agent until the context exits."""
    command = [sys.executable, "-m", "bench.poll_agent", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Polled(process.pid, int(process.stdout.readline()))


def _median(costs: tuple[PollCost, ...]) -> PollCost:
    figures = ([getattr(cost, name) for cost in costs] for name in ("bytes", "daemon", "agent"))
    return PollCost(*(statistics.median(each) for each in figures))
