"""Reads units in parallel: sums per unit, nothing per file.

One thread is the quickest as long as the kernel answers out of its cache, because threads of one interpreter then only
wait for each other. On a disk or a server they wait for that instead, and more of them read more: a thread is added
while those that are there mostly wait.
"""

from __future__ import annotations

import errno
import itertools
import math
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from monitor.agent.datasets.rate_limit import ScanRateLimiter
from monitor.agent.datasets.totals import KEEP_FILE, HardLinks, UnitTotals
from monitor.agent.datasets.tree import Directory, DirectoryTree, exists

_CHUNK_ITEMS = 256
_POLL_SECONDS = 0.1
_BUSY_RATIO = 0.5
_STOP_SECONDS = 2.0
# Swapped for something else between being listed and being opened.
_REPLACED = (errno.ENOTDIR, errno.ELOOP)


@dataclass(eq=False)
class ScanUnit:
    """One unit to be read: a name in a directory. `stat` is that of the unit itself, once it was seen."""

    parent: Directory
    name: str
    is_dir: bool
    tally: UnitTotals = field(default_factory=UnitTotals)
    stat: os.stat_result | None = None
    unread: int = 1  # directories of it that were found and not yet read

    @property
    def path(self) -> str:
        return self.parent.below(self.name)


@dataclass
class _PendingDirectories:
    """Directories that were found in one and wait to be read."""

    unit: ScanUnit
    parent: Directory
    names: list[str]


class UnitScan:
    """One scan of some units. `run` it once."""

    def __init__(self, tree: DirectoryTree, pace: ScanRateLimiter, stop: threading.Event, threads: int = 8) -> None:
        self._tree = tree
        self._pace = pace
        self._stop = stop
        self._threads = threads
        self._links = HardLinks()
        self._changed = threading.Condition()
        self._found: list[_PendingDirectories] = []
        self._reading = 0
        self._over = threading.Event()  # nothing is left, or a thread broke
        self._workers: list[_ScanWorker] = []

    def run(self, units: Iterable[ScanUnit], progress: Callable[[int], None] | None = None) -> None:
        """Given units, fill in what they add up to. Those that `stop` kept from being read whole have `unread` left.

        `progress` is told, by the calling thread, how many entries were seen. Raise what a thread raised.
        """
        self._found = [_PendingDirectories(unit, unit.parent, [unit.name]) for unit in units][
            ::-1
        ]  # the last one is taken first
        if not self._found:
            return
        try:
            self._add_worker()
            seen = _CpuSample(time.monotonic(), 0.0)
            while not self._over.wait(_POLL_SECONDS) and not self._stop.is_set():
                if progress is not None:
                    progress(self.entries)
                seen = self._add_worker_if_they_wait(seen)
        finally:
            self._end()
        for worker in self._workers:
            if worker.error is not None:
                raise worker.error

    @property
    def entries(self) -> int:
        """How many entries were seen so far."""
        return sum(worker.entries for worker in self._workers)

    def end(self) -> None:
        """Let no thread begin anything more."""
        self._over.set()
        with self._changed:
            self._changed.notify_all()

    def leave(self) -> None:
        """Say that a thread is through."""
        self._tree.leave()

    def _end(self) -> None:
        """Wait for the threads. One that hangs on a dead server is left behind: it cannot be ended."""
        self.end()
        deadline = time.monotonic() + _STOP_SECONDS
        for worker in self._workers:
            worker.thread.join(max(0.0, deadline - time.monotonic()))

    def _add_worker(self) -> None:
        worker = _ScanWorker(self)
        self._tree.join()
        worker.thread.start()
        self._workers.append(worker)

    def _add_worker_if_they_wait(self, before: _CpuSample) -> _CpuSample:
        now = _CpuSample(time.monotonic(), sum(_active_seconds(worker.thread) for worker in self._workers))
        active = (now.active - before.active) / (now.at - before.at)
        if active < _BUSY_RATIO and not self._pace.limits and len(self._workers) < self._threads:
            self._add_worker()
        return now

    def next(self) -> tuple[ScanUnit, Directory, str] | None:
        """Return what to read next, waiting for it. Return None at the end."""
        with self._changed:
            while not self._found and not self._over.is_set():
                self._changed.wait()
            if self._over.is_set() or self._stop.is_set():
                return None
            self._reading += 1
            last = self._found[-1]
            name = last.names.pop()
            if not last.names:
                self._found.pop()
            return last.unit, last.parent, name

    def read(self, unit: ScanUnit, parent: Directory, name: str) -> UnitTotals:
        """Read one directory (or the file that is the unit), and put in line the directories that are in it."""
        tally = UnitTotals()
        found: _PendingDirectories | None = None
        whole = True
        try:
            if unit.is_dir:
                found, whole = self._read_directory(unit, parent, name, tally)
            else:
                self._read_file(unit, tally)
        except FileNotFoundError as error:
            if parent is unit.parent:
                tally.errors.add(parent.below(name), error)
        except OSError as error:
            if error.errno in _REPLACED:
                error = OSError(error.errno, "replaced by something else while it was read")
            tally.errors.add(parent.below(name), error)
        with self._changed:
            unit.tally.merge(tally)
            unit.unread += (len(found.names) if found else 0) - (1 if whole else 0)
            if found is not None and found.names:
                self._found.append(found)
                self._changed.notify_all()
            self._reading -= 1
            nothing_left = not self._found and not self._reading
        if nothing_left:
            self.end()
        return tally

    def _read_directory(
        self, unit: ScanUnit, parent: Directory, name: str, tally: UnitTotals
    ) -> tuple[_PendingDirectories, bool]:
        directory, status = self._tree.enter(parent, name)
        if parent is unit.parent:
            unit.stat = status
        tally.add_directory(status)
        found = _PendingDirectories(unit, directory, [])
        whole = False
        with self._tree.at(directory) as descriptor, os.scandir(descriptor) as entries:
            going_on = True
            while going_on and not whole:
                chunk = list(itertools.islice(entries, _CHUNK_ITEMS))
                found.names += tally.add(chunk, directory, self._links)
                whole = len(chunk) < _CHUNK_ITEMS
                going_on = self._pace.take(len(chunk) or 1)
        if not found.names:
            self._tree.release(directory)
        return found, whole

    def _read_file(self, unit: ScanUnit, tally: UnitTotals) -> None:
        with self._tree.at(unit.parent) as descriptor:
            unit.stat = os.stat(unit.name, dir_fd=descriptor, follow_symlinks=False)
            if not stat.S_ISREG(unit.stat.st_mode):
                raise OSError(errno.ENOTDIR, "not a file")
            tally.pinned = exists(KEEP_FILE, descriptor)
        tally.add_file(unit.stat, self._links)


@dataclass(frozen=True)
class _CpuSample:
    """How many seconds threads were active until a moment."""

    at: float
    active: float


def _active_seconds(thread: threading.Thread) -> float:
    """Return how long a thread has run, or could have if a processor had been free: not how long it waited for a disk.

    Threads that seem always active, where the kernel does not tell, only mean that none is added.
    """
    try:
        with open(f"/proc/self/task/{thread.native_id}/schedstat", "rb", buffering=0) as file:
            ran, was_ready, *_ = file.read().split()
    except (OSError, ValueError):
        return math.inf
    return (int(ran) + int(was_ready)) / 1e9


class _ScanWorker:
    """One thread of a scan."""

    def __init__(self, scan: UnitScan) -> None:
        self._scan = scan
        self.entries = 0
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._work, name="dataset-scan", daemon=True)

    def _work(self) -> None:
        try:
            while (task := self._scan.next()) is not None:
                self.entries += self._scan.read(*task).entries
        except Exception as error:  # raised again where the scan was asked for
            self.error = error
            self._scan.end()
        finally:
            self._scan.leave()
