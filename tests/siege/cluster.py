"""The hostile cluster as a process: `python -m tests.siege.cluster`.

It serves an API server with oversized pods that change all the time, and an agent that lies, and prints both ports.
Lines of its input are `fail NAME` and `remove NAME`: a canary whose pull fails, and its end. At the end of the input it
prints how much it has done.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
from collections import deque

from monitor.sim.http import SimRequest, SimServer, write_response
from monitor.sim.objects import Object, SimObjects
from tests.siege.liar import NODE, Liar
from tests.soak.api import Api
from tests.soak.pods import MISSING, stamp
from tests.support.living_api import kube_node

PODS = 60
IMAGE_CHARS = 1_000_000
MESSAGE_CHARS = 300_000
PODS_PER_SECOND = 4.0
RETAINED_CHANGES = 100  # of a megabyte each
CANARIES = "canary"  # namespace


class BriefObjects(SimObjects):
    """Objects with a short history: each change holds a megabyte."""

    def __init__(self) -> None:
        super().__init__()
        self._changes = deque(maxlen=RETAINED_CHANGES)


def failing_pod(namespace: str, name: str, image: str, message: str) -> Object:
    """A pod whose image cannot be pulled."""
    waiting = {"reason": "ErrImagePull", "message": message}
    status = {"name": "main", "image": image[:1000], "imageID": "", "ready": False, "restartCount": 0,
              "state": {"waiting": waiting}}  # fmt: skip
    return {
        "metadata": {
            "name": name, "namespace": namespace, "uid": f"uid-{name}", "creationTimestamp": stamp(time.time() - 60),
        },
        "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": image}]},
        "status": {"phase": "Pending", "startTime": stamp(time.time() - 60), "containerStatuses": [status]},
    }  # fmt: skip


def oversized_pod(number: int, version: int) -> Object:
    """A pod with an image name of a megabyte that differs with each version."""
    image = f"registry.lab/{version}/".ljust(IMAGE_CHARS, "a")
    return failing_pod("tenant", f"oversized-{number}", image, MISSING.format(image=image[:MESSAGE_CHARS]))


class HostileCluster:
    """Objects, the lying agent, and what they have done."""

    def __init__(self) -> None:
        self._objects = BriefObjects()
        self._liar = Liar()
        self._changed = 0
        self._objects.put("nodes", kube_node(NODE, 8))
        for number in range(PODS):
            self._objects.put("pods", oversized_pod(number, 0))

    async def serve(self) -> None:
        """Serve until the end of the input."""
        api, agent = Api(self._objects), SimServer(self._answer)
        _say({"api": await api.start(), "agent": await agent.start(["127.0.0.1"])})
        changing = asyncio.create_task(self._keep_changing())
        while line := await asyncio.to_thread(sys.stdin.readline):
            self._obey(*line.split())
        changing.cancel()
        _say({"lies": self._liar.told, "oversized_pods": self._changed})

    def _obey(self, order: str, name: str) -> None:
        if order == "fail":
            image = f"registry.lab/{CANARIES}/{name}:1"
            self._objects.put("pods", failing_pod(CANARIES, name, image, MISSING.format(image=image)))
            _say({"failed": name, "at": time.monotonic()})
        else:
            self._objects.remove("pods", f"uid-{name}")

    async def _answer(self, request: SimRequest, writer: asyncio.StreamWriter) -> None:
        if request.path == "/v1/snapshot":
            write_response(writer, self._liar.lie())
        else:
            write_response(writer, b"{}", 404)

    async def _keep_changing(self) -> None:
        began = time.monotonic()
        for count in itertools.count(1):
            self._objects.put("pods", oversized_pod(count % PODS, count))
            self._changed = count
            await asyncio.sleep(max(0.01, began + count / PODS_PER_SECOND - time.monotonic()))


def _say(content: object) -> None:
    print(json.dumps(content), flush=True)


if __name__ == "__main__":
    asyncio.run(HostileCluster().serve())
