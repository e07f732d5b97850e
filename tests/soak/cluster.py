"""The cluster of the soak test as a process: `python -m tests.soak.cluster DIRECTORY CHANGES_A_SECOND`.

It serves the data of `bench.cluster_data` and prints its two ports. The first input line starts the changes; from then
on it prints a line for each canary that fails and each that is gone.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path

import msgspec

from bench.cluster_data import KINDS
from tests.soak.agents import Agents
from tests.soak.api import Api, Forgetful
from tests.soak.life import Life


def read(directory: Path) -> Forgetful:
    """Objects as written to disk."""
    objects = Forgetful()
    for kind in KINDS:
        for line in (directory / kind).read_bytes().splitlines():
            objects.put(kind, msgspec.json.decode(line))
    return objects


def say(line: str) -> None:
    print(line, flush=True)


async def serve(directory: Path, rate: float) -> None:
    """Serve until killed."""
    chance = random.Random(11)
    objects = read(directory)
    agents, api = Agents(directory, chance), Api(objects)
    say(json.dumps({"api": await api.start(), "agents": await agents.start()}))
    await asyncio.to_thread(sys.stdin.readline)
    life = Life(objects, agents, api, chance, say)
    life.begin()
    began, beats = time.monotonic(), 0
    while True:
        beats += 1
        life.tick()
        await asyncio.sleep(max(0.0, began + beats / rate - time.monotonic()))


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), float(sys.argv[2])))
