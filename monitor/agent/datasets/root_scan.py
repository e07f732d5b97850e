"""One look at a root: which units it has, what they add up to, whose they are and who uses them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from monitor.agent.datasets.mounts import FsLocation, join_path
from monitor.agent.datasets.rate_limit import ScanRateLimiter
from monitor.agent.datasets.roots import DatasetRoot
from monitor.agent.datasets.scan import ScanUnit, UnitScan
from monitor.agent.datasets.tree import DirectoryTree
from monitor.agent.datasets.units import find_units
from monitor.base.clock import Clock
from monitor.facts.datasets import Kind, ScanFact, UnitFact, UseFact, path_bytes, path_text

# Given places, say by whom each of them is used; a place that is not in the answer is not used.
FindUses = Callable[[Sequence[FsLocation]], Mapping[FsLocation, tuple[UseFact, ...]]]


@dataclass(frozen=True)
class ScanOptions:
    """How a root is looked at: how fast, by how many threads at most, with whose names, and until when."""

    owners: Mapping[int, str]
    entries_per_second: float | None = None
    threads: int = 8
    stop: threading.Event = field(default_factory=threading.Event)
    progress: Callable[[int], None] | None = None
    clock: Clock = time


def scan_root(root: DatasetRoot, pattern: str, kind: Kind, in_use: FindUses, how: ScanOptions) -> ScanFact:
    """Given an open root and a pattern relative to it, return what is there. Raise ValueError for a bad pattern."""
    started_at = how.clock.time()
    pace = ScanRateLimiter(how.entries_per_second, how.stop, how.clock)
    with DirectoryTree(root) as tree:
        found = find_units(tree, pattern, kind, pace)
        scan = UnitScan(tree, pace, how.stop, how.threads)
        scan.run(found.units, how.progress)
    facts = []
    for unit in found.units:
        if unit.stat is None:
            found.errors.merge(unit.tally.errors)
        elif not unit.unread:
            facts.append(unit_fact(root, unit, unit.stat, how.owners))
    return ScanFact(
        root=root.text,
        started_at=started_at,
        finished_at=how.clock.time(),
        units=_with_users(root, facts, in_use),
        left_out=found.left_out,
        entries=found.entries + scan.entries,
        atime_usable=root.atime_usable,
        read_only=root.read_only,
        stopped=how.stop.is_set(),
        errors=tuple(found.errors.first),
        failures=found.errors.count,
    )


def unit_fact(root: DatasetRoot, unit: ScanUnit, stat: os.stat_result, owners: Mapping[int, str]) -> UnitFact:
    """Given a unit that was read and its own stat, return it as a fact."""
    tally = unit.tally
    return UnitFact(
        root=root.text,
        path=path_text(os.fsencode(unit.path)),
        kind="dir" if unit.is_dir else "file",
        device=stat.st_dev,
        inode=stat.st_ino,
        owner_uid=stat.st_uid,
        owner=owners.get(stat.st_uid),
        allocated_bytes=tally.allocated,
        apparent_bytes=tally.apparent,
        files=tally.files,
        newest_atime=tally.atime,
        newest_mtime=tally.mtime,
        newest_ctime=tally.ctime,
        pinned=tally.pinned,
        errors=tuple(tally.errors.first),
        failures=tally.errors.count,
    )


def uses_at(places: Sequence[FsLocation], users: Mapping[FsLocation, tuple[UseFact, ...]]) -> tuple[UseFact, ...]:
    """Given the places that one unit may be and who uses which place, return who uses the unit."""
    return tuple(dict.fromkeys(use for place in places for use in users.get(place, ())))


def locations_of(root: DatasetRoot, path: bytes) -> tuple[FsLocation, ...]:
    """Given a path relative to a root, return where that lies in its filesystem."""
    return tuple(FsLocation(place.filesystem, join_path(place.path, path)) for place in root.places)


def read_owners(rootfs: str = "") -> dict[int, str]:
    """Return the names of the node's users. Those of a directory service are not asked for: that can hang."""
    names: dict[int, str] = {}
    try:
        with open(f"{rootfs}/etc/passwd", "rb") as file:
            for line in file:
                name, *rest = line.split(b":")
                if len(rest) >= 2 and rest[1].isdigit():
                    names.setdefault(int(rest[1]), name.decode("utf-8", "replace"))
    except FileNotFoundError:
        pass  # an image without users: nobody has a name then
    return names


def _with_users(root: DatasetRoot, facts: Sequence[UnitFact], in_use: FindUses) -> tuple[UnitFact, ...]:
    places = [locations_of(root, path_bytes(fact.path)) for fact in facts]
    users = in_use([place for several in places for place in several]) if facts else {}
    return tuple(
        msgspec.structs.replace(fact, in_use_by=uses_at(several, users))
        for fact, several in zip(facts, places, strict=True)
    )
