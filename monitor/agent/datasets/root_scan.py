"""Scans a root: its units, their totals, owners and uses."""

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
from monitor.base.text import MAX_TEXT_CHARS
from monitor.facts.datasets import ScanFact, UnitFact, UnitKind, UseFact, path_bytes, path_text

# Uses by location; a location that is missing from the result is not in use.
FindUses = Callable[[Sequence[FsLocation]], Mapping[FsLocation, tuple[UseFact, ...]]]


@dataclass(frozen=True)
class ScanOptions:
    """Rate, parallelism and cancellation of a scan. `owners` maps uids to user names."""

    owners: Mapping[int, str]
    entries_per_second: float | None = None
    threads: int = 8
    stop: threading.Event = field(default_factory=threading.Event)
    progress: Callable[[int], None] | None = None
    clock: Clock = time


def scan_root(root: DatasetRoot, pattern: str, kind: UnitKind, find_uses: FindUses, options: ScanOptions) -> ScanFact:
    """Scan the units that match a pattern relative to a root. Raise ValueError for an invalid pattern."""
    started_at = options.clock.time()
    limiter = ScanRateLimiter(options.entries_per_second, options.stop, options.clock)
    with DirectoryTree(root) as tree:
        listing = find_units(tree, pattern, kind, limiter)
        scan = UnitScan(tree, limiter, options.stop, options.threads)
        scan.run(listing.units, options.progress)
    facts = []
    for unit in listing.units:
        if unit.stat is None:
            listing.errors.merge(unit.totals.errors)
        elif not unit.unread:
            facts.append(unit_fact(root, unit, unit.stat, options.owners))
    short = [fact for fact in facts if len(fact.path) <= MAX_TEXT_CHARS]  # a path cannot be cut: it would be another
    return ScanFact(
        root=root.text,
        started_at=started_at,
        finished_at=options.clock.time(),
        units=_with_uses(root, short, find_uses),
        left_out=listing.left_out + len(facts) - len(short),
        entries=listing.entries + scan.entries,
        atime_usable=root.atime_usable,
        read_only=root.read_only,
        stopped=options.stop.is_set(),
        errors=tuple(listing.errors.first),
        failures=listing.errors.count,
    )


def unit_fact(root: DatasetRoot, unit: ScanUnit, stat: os.stat_result, owners: Mapping[int, str]) -> UnitFact:
    """Fact of a unit that was read; `stat` is that of the unit itself."""
    totals = unit.totals
    return UnitFact(
        root=root.text,
        path=path_text(os.fsencode(unit.path)),
        kind="dir" if unit.is_dir else "file",
        device=stat.st_dev,
        inode=stat.st_ino,
        owner_uid=stat.st_uid,
        owner=owners.get(stat.st_uid),
        allocated_bytes=totals.allocated,
        apparent_bytes=totals.apparent,
        files=totals.files,
        newest_atime=totals.atime,
        newest_mtime=totals.mtime,
        newest_ctime=totals.ctime,
        pinned=totals.pinned,
        errors=tuple(totals.errors.first),
        failures=totals.errors.count,
    )


def uses_at(locations: Sequence[FsLocation], uses: Mapping[FsLocation, tuple[UseFact, ...]]) -> tuple[UseFact, ...]:
    """Uses of a unit, given its possible locations and the uses of each location."""
    return tuple(dict.fromkeys(use for location in locations for use in uses.get(location, ())))


def locations_of(root: DatasetRoot, path: bytes) -> tuple[FsLocation, ...]:
    """Possible locations of a path relative to a root."""
    return tuple(FsLocation(location.filesystem, join_path(location.path, path)) for location in root.locations)


def read_owners(rootfs: str = "") -> dict[int, str]:
    """Names of the node's local users. Directory services are not queried, because that can hang."""
    names: dict[int, str] = {}
    try:
        with open(f"{rootfs}/etc/passwd", "rb") as file:
            for line in file:
                name, *rest = line.split(b":")
                if len(rest) >= 2 and rest[1].isdigit():
                    names.setdefault(int(rest[1]), name.decode("utf-8", "replace"))
    except FileNotFoundError:
        pass  # an image without /etc/passwd
    return names


def _with_uses(root: DatasetRoot, facts: Sequence[UnitFact], find_uses: FindUses) -> tuple[UnitFact, ...]:
    locations = [locations_of(root, path_bytes(fact.path)) for fact in facts]
    uses = find_uses([location for candidates in locations for location in candidates]) if facts else {}
    return tuple(
        msgspec.structs.replace(fact, in_use_by=uses_at(candidates, uses))
        for fact, candidates in zip(facts, locations, strict=True)
    )
