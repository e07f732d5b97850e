"""Which units a root has: what a pattern such as `*/datasets/*` names, level by level."""

from __future__ import annotations

import fnmatch
import os
import re
from dataclasses import dataclass, field

from monitor.agent.datasets.rate_limit import ScanRateLimiter
from monitor.agent.datasets.scan import ScanUnit
from monitor.agent.datasets.totals import PathErrors
from monitor.agent.datasets.tree import Directory, DirectoryTree
from monitor.facts.datasets import Kind

TRASH_DIRECTORY = ".gpuwarden-trash"
MAX_UNITS = 100_000


@dataclass
class UnitListing:
    """The units that were found, how many more there are than can be held, and what could not be looked at."""

    units: list[ScanUnit] = field(default_factory=list)
    left_out: int = 0
    entries: int = 0
    stopped: bool = False
    errors: PathErrors = field(default_factory=PathErrors)


def find_units(
    tree: DirectoryTree, pattern: str, kind: Kind, pace: ScanRateLimiter, max_units: int = MAX_UNITS
) -> UnitListing:
    """Given a pattern relative to the root, return the units of that kind that it names.

    As in a shell, a star does not stand for a name that begins with a dot. Raise ValueError for a pattern that is none.
    """
    *outer, last = _levels(pattern)
    found = UnitListing()
    level = [tree.top]
    for matches in outer:
        level = [inner for directory in level for inner in _enter_matching(tree, directory, matches, pace, found)]
    for directory in level:
        for name in _names(tree, directory, last, kind, pace, found):
            if len(found.units) < max_units:
                found.units.append(ScanUnit(directory, name, kind == "dir"))
            else:
                found.left_out += 1
    return found


def _levels(pattern: str) -> list[re.Pattern[str]]:
    parts = pattern.split("/")
    if any(part in ("", ".", "..") or "**" in part for part in parts):
        raise ValueError(f"a pattern must be relative to the root, without `..` and `**`: {pattern!r}")
    # Hidden names, the trash among them, only where the pattern has the dot.
    return [re.compile(("" if part.startswith(".") else r"(?!\.)") + fnmatch.translate(part)) for part in parts]


def _enter_matching(
    tree: DirectoryTree, directory: Directory, matches: re.Pattern[str], pace: ScanRateLimiter, found: UnitListing
) -> list[Directory]:
    inner = []
    for name in _names(tree, directory, matches, "dir", pace, found):
        try:
            inner.append(tree.enter(directory, name)[0])
        except FileNotFoundError:
            continue
        except OSError as error:
            found.errors.add(directory.below(name), error)
    return inner


def _names(
    tree: DirectoryTree,
    directory: Directory,
    matches: re.Pattern[str],
    kind: Kind,
    pace: ScanRateLimiter,
    found: UnitListing,
) -> list[str]:
    """Return the names of that kind in a directory, sorted, so that two scans agree on what is over the cap."""
    if found.stopped:
        return []
    names, entries = [], 0
    try:
        with tree.at(directory) as descriptor, os.scandir(descriptor) as listing:
            for entries, entry in enumerate(listing, 1):  # noqa: B007  # how many there were
                if matches.match(entry.name) and _is(entry, kind) and not _is_trash(directory, entry.name):
                    names.append(entry.name)
    except OSError as error:
        found.errors.add(directory.path(), error)
    found.entries += entries
    found.stopped = not pace.take(entries or 1)
    return sorted(names)


def _is(entry: os.DirEntry[str], kind: Kind) -> bool:
    return entry.is_dir(follow_symlinks=False) if kind == "dir" else entry.is_file(follow_symlinks=False)


def _is_trash(directory: Directory, name: str) -> bool:
    return directory.parent is None and name == TRASH_DIRECTORY
