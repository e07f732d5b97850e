"""Finds the units of a root: the entries that a pattern such as `*/datasets/*` matches, level by level."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from monitor.agent.datasets.rate_limit import ScanRateLimiter
from monitor.agent.datasets.scan import ScanUnit
from monitor.agent.datasets.totals import PathErrors
from monitor.agent.datasets.tree import Directory, DirectoryTree
from monitor.base.globs import compile_file_glob
from monitor.facts.datasets import UnitKind

TRASH_DIRECTORY = ".gpuwarden-trash"
MAX_UNITS = 100_000


@dataclass
class UnitListing:
    """Units that match a pattern. `left_out` counts those over the limit."""

    units: list[ScanUnit] = field(default_factory=list)
    left_out: int = 0
    entries: int = 0
    stopped: bool = False
    errors: PathErrors = field(default_factory=PathErrors)


def find_units(
    tree: DirectoryTree, pattern: str, kind: UnitKind, limiter: ScanRateLimiter, max_units: int = MAX_UNITS
) -> UnitListing:
    """Units of a kind that match a pattern relative to the root. Raise ValueError for an invalid pattern.

    As in a shell, a star does not match names that begin with a dot.
    """
    *parent_patterns, last = _components(pattern)
    finder = _UnitFinder(tree, limiter)
    directories = [tree.top]
    for matches in parent_patterns:
        directories = [child for directory in directories for child in finder.enter_matching(directory, matches)]
    listing = finder.listing
    for directory in directories:
        for name in finder.names(directory, last, kind):
            if len(listing.units) < max_units:
                listing.units.append(ScanUnit(directory, name, kind == "dir"))
            else:
                listing.left_out += 1
    return listing


def _components(pattern: str) -> list[re.Pattern[str]]:
    parts = pattern.split("/")
    if any(part in ("", ".", "..") or "**" in part for part in parts):
        raise ValueError(f"a pattern must be relative to the root, without `..` and `**`: {pattern!r}")
    return [compile_file_glob(part) for part in parts]


class _UnitFinder:
    def __init__(self, tree: DirectoryTree, limiter: ScanRateLimiter) -> None:
        self._tree = tree
        self._limiter = limiter
        self.listing = UnitListing()

    def enter_matching(self, directory: Directory, matches: re.Pattern[str]) -> list[Directory]:
        children = []
        for name in self.names(directory, matches, "dir"):
            try:
                children.append(self._tree.enter(directory, name)[0])
            except FileNotFoundError:
                continue
            except OSError as error:
                self.listing.errors.add(directory.below(name), error)
        return children

    def names(self, directory: Directory, matches: re.Pattern[str], kind: UnitKind) -> list[str]:
        """Matching names of a kind in a directory, sorted, so that two scans leave out the same units."""
        if self.listing.stopped:
            return []
        names, entries = [], 0
        try:
            with self._tree.at(directory) as descriptor, os.scandir(descriptor) as scanned:
                for entries, entry in enumerate(scanned, 1):  # noqa: B007  # the last value is used below
                    if matches.match(entry.name) and _is(entry, kind) and not _is_trash(directory, entry.name):
                        names.append(entry.name)
        except OSError as error:
            self.listing.errors.add(directory.path(), error)
        self.listing.entries += entries
        self.listing.stopped = not self._limiter.acquire(entries or 1)
        return sorted(names)


def _is(entry: os.DirEntry[str], kind: UnitKind) -> bool:
    return entry.is_dir(follow_symlinks=False) if kind == "dir" else entry.is_file(follow_symlinks=False)


def _is_trash(directory: Directory, name: str) -> bool:
    return directory.parent is None and name == TRASH_DIRECTORY
