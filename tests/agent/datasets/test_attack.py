"""Directories are swapped for links 100,000 times during operations: nothing outside the root is touched."""

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
from tests.agent.datasets.root_fixture import (
    NOW,
    OWNERS,
    RootFixture,
    fill,
    fingerprint,
    memory_fixture,
    no_uses,
    planned,
)

SWAPS, PURGES = 100_000, 100
LIMIT_SECONDS = 300.0  # it ends much earlier on an idle machine
ATTACKERS, ATTACKED = 2, 3  # processes, and number of users' directories (the last ones) that they attack


class Attack:
    """Running attackers."""

    def __init__(self, shared: list[mmap.mmap]) -> None:
        self._shared = shared

    @property
    def swaps(self) -> int:
        """Number of swaps made during operations."""
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
def attack(fixture: RootFixture) -> Iterator[Attack]:
    with contextlib.ExitStack() as stack:
        shared = []
        for number in range(ATTACKERS):
            path = fixture.base / f"shared{number}"
            path.write_bytes(bytes(16))
            file = stack.enter_context(path.open("r+b"))
            shared.append(stack.enter_context(mmap.mmap(file.fileno(), 16)))
            command = [sys.executable, str(Path(__file__).with_name("attacker.py")), str(fixture.root), str(path)]
            process = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE))
            assert process.stdin is not None
            stack.callback(process.stdin.close)  # ends it; Popen.__exit__ waits for it
        yield Attack(shared)


def make_user(fixture: RootFixture, number: int) -> None:
    """Create a user with a unit and, at every level, a link to the same level of the canary."""
    stage = fixture.base / "stage"
    fill(stage / "datasets/a")
    for above, name in (("", "datasets"), ("datasets", "a"), ("datasets/a", "in"), ("datasets/a/in", "deep")):
        (stage / above / f"{name}.link").symlink_to(fixture.canary / above / name)
    os.link(fixture.canary / "datasets/a/f", stage / "datasets/a/hard")
    os.rename(stage, fixture.root / f"user{number:06}")


def operate(fixture: RootFixture, counts: Counter[str]) -> None:
    """Scan, trash, and then restore or purge whatever the attackers left."""
    with fixture.roots.open(str(fixture.root)) as root:
        scan = scan_root(root, "*/datasets/*", "dir", no_uses, ScanOptions(owners=OWNERS))
        trash = Trash(root, fixture.journal, no_uses, OWNERS)
        assert all(unit.apparent_bytes < 1 << 40 for unit in scan.units), "the canary was counted"
        for unit in scan.units:
            try:
                entry = trash.put(planned(unit), "race", NOW)
                counts["trashed"] += 1
                if random.random() < 0.3:
                    trash.restore(entry.id)
                    counts["restored"] += 1
            except DatasetRefusedError as refusal:
                counts[refusal.reason] += 1
        for entry in trash.entries():
            with contextlib.suppress(DatasetRefusedError):
                counts["purged"] += trash.purge(entry.id, NOW).finished


@pytest.mark.timeout(600)
def test_nothing_outside_is_ever_touched() -> None:
    counts: Counter[str] = Counter()
    with memory_fixture() as fixture:
        before = fingerprint(fixture.canary)
        with attack(fixture) as attackers:
            deadline = time.monotonic() + LIMIT_SECONDS
            for number in itertools.count():
                make_user(fixture, number)
                shutil.rmtree(fixture.root / f"user{number - ATTACKED:06}", ignore_errors=True)
                with attackers.counted():
                    operate(fixture, counts)
                if (attackers.swaps >= SWAPS and counts["purged"] >= PURGES) or time.monotonic() > deadline:
                    break
            swaps = attackers.swaps
        assert fingerprint(fixture.canary) == before
    assert swaps >= SWAPS
    assert counts["purged"] >= PURGES
    # Both sides were effective.
    assert counts["restored"] > PURGES / 10
    assert (
        counts["changed"] + counts["symlink"] + counts["unreadable"] + counts["gone"] + counts["parent-gone"]
        > PURGES / 4
    )
