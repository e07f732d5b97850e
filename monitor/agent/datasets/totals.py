"""Totals of a unit: sums and newest times, never a list of files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from monitor.agent.datasets.tree import Directory
from monitor.facts.datasets import path_text

KEEP_FILE = ".keep"
MAX_ERRORS = 8
_MAX_PATH_CHARS = 500  # paths in deep trees are truncated
_STAT_BLOCK_BYTES = 512  # unit of st_blocks, whatever the filesystem's block size


class HardLinks:
    """Counts each file with several names once. A file is dropped when all its names were seen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names_left: dict[int, int] = {}

    def is_first(self, stat: os.stat_result) -> bool:
        """Whether this is the first name seen of a file with several names."""
        with self._lock:
            left = self._names_left.pop(stat.st_ino, None)
            names = stat.st_nlink if left is None else left
            if names > 1:
                self._names_left[stat.st_ino] = names - 1
            return left is None


class PathErrors:
    """Number of errors, and the first few messages."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, path: str, error: OSError) -> None:
        self.count += 1
        if len(self.first) < MAX_ERRORS:
            text = path_text(os.fsencode(path))
            shown = text if len(text) <= _MAX_PATH_CHARS else "…" + text[-_MAX_PATH_CHARS:]
            self.first.append(f"{shown}: {error.strerror or error}")

    def merge(self, other: PathErrors) -> None:
        self.count += other.count
        self.first += other.first[: MAX_ERRORS - len(self.first)]


class UnitTotals:
    """Sums and maxima over entries. Each is filled by one thread; `merge` combines them."""

    __slots__ = ("allocated", "apparent", "atime", "ctime", "entries", "errors", "files", "mtime", "pinned")

    def __init__(self) -> None:
        self.allocated = self.apparent = self.files = self.entries = 0
        self.atime: float | None = None
        self.mtime = self.ctime = 0.0
        self.pinned = False
        self.errors = PathErrors()

    def add_directory(self, stat: os.stat_result) -> None:
        self.entries += 1
        self.allocated += stat.st_blocks * _STAT_BLOCK_BYTES
        self.apparent += stat.st_size
        self.mtime = max(self.mtime, stat.st_mtime)
        self.ctime = max(self.ctime, stat.st_ctime)

    def add_file(self, stat: os.stat_result, links: HardLinks) -> None:
        self._add_times((stat,))
        self._add_sizes((stat,), links)

    def add(self, entries: Iterable[os.DirEntry[str]], parent: Directory, links: HardLinks) -> list[str]:
        """Add all entries of a directory except subdirectories, whose names are returned."""
        directories = []
        stats = []
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.name)
                else:
                    stats.append(entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue  # deleted since it was listed
            except OSError as error:
                self.errors.add(parent.below(entry.name), error)
            if entry.name == KEEP_FILE:
                self.pinned = True
        if stats:
            self._add_times(stats)
            self._add_sizes(stats, links)
        return directories

    def merge(self, other: UnitTotals) -> None:
        self.allocated += other.allocated
        self.apparent += other.apparent
        self.files += other.files
        self.entries += other.entries
        if other.atime is not None:
            self.atime = other.atime if self.atime is None else max(self.atime, other.atime)
        self.mtime = max(self.mtime, other.mtime)
        self.ctime = max(self.ctime, other.ctime)
        self.pinned = self.pinned or other.pinned
        self.errors.merge(other.errors)

    def _add_times(self, stats: Iterable[os.stat_result]) -> None:
        atime, mtime, ctime = self.atime or 0.0, self.mtime, self.ctime
        for stat in stats:
            if stat.st_atime > atime:
                atime = stat.st_atime
            if stat.st_mtime > mtime:
                mtime = stat.st_mtime
            if stat.st_ctime > ctime:
                ctime = stat.st_ctime
        self.atime, self.mtime, self.ctime = atime, mtime, ctime

    def _add_sizes(self, stats: Iterable[os.stat_result], links: HardLinks) -> None:
        files = blocks = apparent = 0
        for stat in stats:
            files += 1
            if stat.st_nlink > 1 and not links.is_first(stat):
                continue
            blocks += stat.st_blocks
            apparent += stat.st_size
        self.files += files
        self.entries += files
        self.allocated += blocks * _STAT_BLOCK_BYTES
        self.apparent += apparent
