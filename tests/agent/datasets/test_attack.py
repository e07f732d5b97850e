"""Links swapped in for directories at any step, 100,000 times while the engine works: nothing outside is touched."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import random
import shutil
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitor.agent.datasets.errors import DatasetRefusedError
from monitor.agent.datasets.root_scan import ScanOptions, scan_root
from monitor.agent.datasets.trash import Trash
from tests.agent.datasets.ground import NOW, OWNERS, Ground, fill, fingerprint, memory_ground, nobody, planned

SWAPS, PURGES = 100_000, 100
LIMIT_SECONDS = 40.0
ATTACKERS, ATTACKED = 2, 3  # processes, and how many of the users' directories they work on: the last ones


class Attack:
    """Attackers at work on a root."""

    def __init__(self, shared: list[mmap.mmap]) -> None:
        self._shared = shared

    @property
    def swaps(self) -> int:
        """How many swaps were made while the engine was at work."""
        return sum(struct.unpack("q", shared[8:16])[0] for shared in self._shared)

    @contextmanager
    def counted(self) -> Iterator[None]:
        for shared in self._shared:
            shared[0] = 1
        try:
            yield
        finally:
            for shared in self._shared:
                shared[0] = 0


@contextmanager
def attack(ground: Ground) -> Iterator[Attack]:
    with contextlib.ExitStack() as stack:
        shared = []
        for number in range(ATTACKERS):
            path = ground.base / f"shared{number}"
            path.write_bytes(bytes(16))
            file = stack.enter_context(path.open("r+b"))
            shared.append(stack.enter_context(mmap.mmap(file.fileno(), 16)))
            command = [sys.executable, str(Path(__file__).with_name("attacker.py")), str(ground.root), str(path)]
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE))
            assert process.stdin is not None
            stack.callback(process.stdin.close)  # ends it; leaving it waits for that
        yield Attack(shared)


def make_user(ground: Ground, number: int) -> None:
    """Make a user with a unit and, at every level, a link that leads to the same level of the canary."""
    stage = ground.base / "stage"
    fill(stage / "datasets/a")
    for above, name in (("", "datasets"), ("datasets", "a"), ("datasets/a", "in"), ("datasets/a/in", "deep")):
        (stage / above / f"{name}.link").symlink_to(ground.canary / above / name)
    os.link(ground.canary / "datasets/a/f", stage / "datasets/a/hard")
    os.rename(stage, ground.root / f"user{number:06}")


def act(ground: Ground, did: Counter[str]) -> None:
    """Plan, trash, and then restore or purge, whatever the attackers leave of it."""
    with ground.roots.open(str(ground.root)) as root:
        scan = scan_root(root, "*/datasets/*", "dir", nobody, ScanOptions(owners=OWNERS))
        trash = Trash(root, ground.journal, nobody, OWNERS)
        assert all(unit.apparent_bytes < 1 << 40 for unit in scan.units), "the canary was counted"
        for unit in scan.units:
            try:
                entry = trash.put(planned(unit), "race", NOW)
                did["trashed"] += 1
                if random.random() < 0.3:
                    trash.restore(entry.id)
                    did["restored"] += 1
            except DatasetRefusedError as refusal:
                did[refusal.reason] += 1
        for entry in trash.entries():
            with contextlib.suppress(DatasetRefusedError):
                did["purged"] += trash.purge(entry.id, NOW).finished


@pytest.mark.timeout(120)
def test_nothing_outside_is_ever_touched() -> None:
    did: Counter[str] = Counter()
    with memory_ground() as ground:
        before = fingerprint(ground.canary)
        with attack(ground) as attackers:
            ends = time.monotonic() + LIMIT_SECONDS
            for number in itertools.count():
                make_user(ground, number)
                shutil.rmtree(ground.root / f"user{number - ATTACKED:06}", ignore_errors=True)
                with attackers.counted():
                    act(ground, did)
                if (attackers.swaps >= SWAPS and did["purged"] >= PURGES) or time.monotonic() > ends:
                    break
            swaps = attackers.swaps
        assert fingerprint(ground.canary) == before
    assert swaps >= SWAPS
    assert did["purged"] >= PURGES
    # It was no walk-over for either side.
    assert did["restored"] > PURGES / 10
    assert did["changed"] + did["symlink"] + did["unreadable"] + did["gone"] + did["parent-gone"] > PURGES / 4
