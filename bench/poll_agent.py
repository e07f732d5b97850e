"""The agent of a node with 8 GPUs and 60 images: `python -m bench.poll_agent unchanged|busy`. It prints its port.

Collectors have run before every request, as they do between two polls of a daemon. On a busy node they read other
figures of GPUs, host, containers and disks; on an unchanged one they read the same as before.
"""

from __future__ import annotations

import random
import sys
import time

import msgspec

from bench.snapshot_data import Placed, snapshot
from monitor.agent.server import AgentServer
from monitor.facts import CollectorFact, NodeSnapshot

GPUS, PODS, IMAGES = 8, 10, 60
RUN_SHARE = 0.6  # of the collectors that run between two polls


class ReadNode:
    """A node and what its collectors read."""

    def __init__(self, *, busy: bool) -> None:
        self._busy = busy
        self._chance = random.Random(7)  # deterministic
        pods = [self._pod(number) for number in range(PODS)]
        self._whole = msgspec.json.decode(snapshot("gpu-0001", pods, GPUS, self._chance, IMAGES), type=NodeSnapshot)

    def snapshot(self) -> NodeSnapshot:
        """Snapshot after some collectors have run."""
        whole, now = self._whole, time.time()
        collectors = tuple(self._run(fact, now) for fact in whole.collectors)
        self._whole = msgspec.structs.replace(self._figures(whole), at=now, collectors=collectors)
        return self._whole

    def _run(self, fact: CollectorFact, now: float) -> CollectorFact:
        if self._chance.random() > RUN_SHARE:
            return fact
        duration = self._chance.random() / 100
        return msgspec.structs.replace(fact, runs=fact.runs + 1, succeeded_at=now, duration_seconds=duration)

    def _figures(self, whole: NodeSnapshot) -> NodeSnapshot:
        if not self._busy or whole.gpu is None or whole.host is None:
            return whole
        change, figure = msgspec.structs.replace, self._chance.random
        gpus = tuple(change(gpu, utilization_ratio=figure(), power_watts=400 * figure()) for gpu in whole.gpu.gpus)
        return change(
            whole,
            gpu=change(whole.gpu, gpus=gpus),
            host=change(whole.host, load1=figure()),
            container_usage=tuple(change(usage, cpu_cores=figure()) for usage in whole.container_usage or ()),
            disk_io=tuple(change(disk, busy_ratio=figure()) for disk in whole.disk_io or ()),
        )

    def _pod(self, number: int) -> Placed:
        container, sandbox = (f"{self._chance.getrandbits(256):064x}" for _ in range(2))
        uid, image = f"9493223b-0000-4000-8000-{number:012x}", f"harbor.lab:8443/team/image:{number}"
        return Placed(uid, f"train-{number}", "team-1", int(number < GPUS), container, sandbox, image, 1000)


def main(kind: str) -> None:
    """Serve until the input ends."""
    server = AgentServer("127.0.0.1", 0, None, ReadNode(busy=kind == "busy").snapshot)
    server.start()
    print(server.address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
