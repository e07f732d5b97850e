"""Reads units in parallel and adds up their totals.

While the kernel answers from its cache, one thread is fastest, because threads of one interpreter only wait for each
other. On a disk or a server they wait for I/O: a thread is added while the existing ones are mostly idle.
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
from monitor.base.threads import spawn

_CHUNK_ITEMS = 256
_POLL_SECONDS = 0.1
_BUSY_RATIO = 0.5
_STOP_SECONDS = 2.0
# Replaced by something else between listing and opening.
_REPLACED = (errno.ENOTDIR, errno.ELOOP)


@dataclass(eq=False)
class ScanUnit:
    """A unit to be read: a name in a directory. `stat` is that of the unit itself, once it was read."""

    parent: Directory
    name: str
    is_dir: bool
    totals: UnitTotals = field(default_factory=UnitTotals)
    stat: os.stat_result | None = None
    unread: int = 1  # directories that were found but not yet read

    @property
    def path(self) -> str:
        return self.parent.below(self.name)


@dataclass
class _PendingDirectories:
    """Subdirectories of one directory that are still to be read."""

    unit: ScanUnit
    parent: Directory
    names: list[str]


class UnitScan:
    """One scan of some units. `run` it once."""

    def __init__(self, tree: DirectoryTree, limiter: ScanRateLimiter, stop: threading.Event, threads: int = 8) -> None:
        self._tree = tree
        self._limiter = limiter
        self._stop = stop
        self._max_threads = threads
        self._links = HardLinks()
        self._changed = threading.Condition()
        self._pending: list[_PendingDirectories] = []
        self._reading = 0
        self._ended = threading.Event()  # nothing is left, or a thread failed
        self._workers: list[_ScanWorker] = []

    def run(self, units: Iterable[ScanUnit], progress: Callable[[int], None] | None = None) -> None:
        """Fill in the totals of units. If the scan was stopped, incomplete units have `unread` above 0.

        `progress` is called on this thread with the number of entries read. Raise what a worker thread raised.
        """
        self._pending = [_PendingDirectories(unit, unit.parent, [unit.name]) for unit in units][::-1]  # a stack
        if not self._pending:
            return
        try:
            self._add_worker()
            sample = _CpuSample(time.monotonic(), 0.0)
            while not self._ended.wait(_POLL_SECONDS) and not self._stop.is_set():
                if progress is not None:
                    progress(self.entries)
                sample = self._add_worker_if_idle(sample)
        finally:
            self._join_workers()
        for worker in self._workers:
            if worker.error is not None:
                raise worker.error

    @property
    def entries(self) -> int:
        """Number of entries read so far."""
        return sum(worker.entries for worker in self._workers)

    def end(self) -> None:
        """Let no worker start another directory."""
        self._ended.set()
        with self._changed:
            self._changed.notify_all()

    def leave(self) -> None:
        """Release the tree at the end of a worker."""
        self._tree.leave()

    def _join_workers(self) -> None:
        """Wait for the workers. One that hangs on a dead server cannot be interrupted and is abandoned."""
        self.end()
        deadline = time.monotonic() + _STOP_SECONDS
        for worker in self._workers:
            worker.thread.join(max(0.0, deadline - time.monotonic()))

    def _add_worker(self) -> None:
        self._tree.join()
        self._workers.append(_ScanWorker(self))

    def _add_worker_if_idle(self, before: _CpuSample) -> _CpuSample:
        now = _CpuSample(time.monotonic(), sum(_cpu_seconds(worker.thread) for worker in self._workers))
        busy = (now.cpu_seconds - before.cpu_seconds) / (now.at - before.at)
        if busy < _BUSY_RATIO and not self._limiter.is_limited and len(self._workers) < self._max_threads:
            self._add_worker()
        return now

    def next(self) -> tuple[ScanUnit, Directory, str] | None:
        """Wait for the next directory to read. None at the end."""
        with self._changed:
            while not self._pending and not self._ended.is_set():
                self._changed.wait()
            if self._ended.is_set() or self._stop.is_set():
                return None
            self._reading += 1
            last = self._pending[-1]
            name = last.names.pop()
            if not last.names:
                self._pending.pop()
            return last.unit, last.parent, name

    def read(self, unit: ScanUnit, parent: Directory, name: str) -> UnitTotals:
        """Read one directory, or the file that is the unit, and queue its subdirectories."""
        totals = UnitTotals()
        subdirectories: _PendingDirectories | None = None
        complete = True
        try:
            if unit.is_dir:
                subdirectories, complete = self._read_directory(unit, parent, name, totals)
            else:
                self._read_file(unit, totals)
        except FileNotFoundError as error:
            if parent is unit.parent:
                totals.errors.add(parent.below(name), error)
        except OSError as error:
            if error.errno in _REPLACED:
                error = OSError(error.errno, "replaced while it was read")
            totals.errors.add(parent.below(name), error)
        with self._changed:
            unit.totals.merge(totals)
            unit.unread += (len(subdirectories.names) if subdirectories else 0) - (1 if complete else 0)
            if subdirectories is not None and subdirectories.names:
                self._pending.append(subdirectories)
                self._changed.notify_all()
            self._reading -= 1
            nothing_left = not self._pending and not self._reading
        if nothing_left:
            self.end()
        return totals

    def _read_directory(
        self, unit: ScanUnit, parent: Directory, name: str, totals: UnitTotals
    ) -> tuple[_PendingDirectories, bool]:
        directory, status = self._tree.enter(parent, name)
        if parent is unit.parent:
            unit.stat = status
        totals.add_directory(status)
        subdirectories = _PendingDirectories(unit, directory, [])
        complete = False
        with self._tree.at(directory) as descriptor, os.scandir(descriptor) as entries:
            may_continue = True
            while may_continue and not complete:
                chunk = list(itertools.islice(entries, _CHUNK_ITEMS))
                subdirectories.names += totals.add(chunk, directory, self._links)
                complete = len(chunk) < _CHUNK_ITEMS
                may_continue = self._limiter.acquire(len(chunk) or 1)
        if not subdirectories.names:
            self._tree.release(directory)
        return subdirectories, complete

    def _read_file(self, unit: ScanUnit, totals: UnitTotals) -> None:
        with self._tree.at(unit.parent) as descriptor:
            unit.stat = os.stat(unit.name, dir_fd=descriptor, follow_symlinks=False)
            if not stat.S_ISREG(unit.stat.st_mode):
                raise OSError(errno.ENOTDIR, "not a file")
            totals.pinned = exists(KEEP_FILE, descriptor)
        totals.add_file(unit.stat, self._links)


@dataclass(frozen=True)
class _CpuSample:
    """CPU time of all workers at a point in time."""

    at: float
    cpu_seconds: float


def _cpu_seconds(thread: threading.Thread) -> float:
    """Seconds for which a thread ran or was runnable, in contrast to waiting for I/O.

    Infinite where the kernel does not report it: then no worker is added.
    """
    try:
        with open(f"/proc/self/task/{thread.native_id}/schedstat", "rb", buffering=0) as file:
            running, runnable, *_ = file.read().split()
    except (OSError, ValueError):
        return math.inf
    return (int(running) + int(runnable)) / 1e9


class _ScanWorker:
    def __init__(self, scan: UnitScan) -> None:
        self._scan = scan
        self.entries = 0
        self.error: Exception | None = None
        self.thread = spawn("dataset-scan", self._work)

    def _work(self) -> None:
        try:
            while (task := self._scan.next()) is not None:
                self.entries += self._scan.read(*task).entries
        except Exception as error:  # raised again by UnitScan.run
            self.error = error
            self._scan.end()
        finally:
            self._scan.leave()
