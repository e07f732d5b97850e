"""One process as /proc shows it: name, state, start time and user.

Command lines and environments are not read: they contain secrets.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_MIN_FIELDS = 20  # of /proc/<pid>/stat after the name, which is in parentheses: from the state to the start time
_STAT_BYTES = 4096  # more than 52 numbers need
_CLOCK_STEP_SECONDS = 1.0


class ProcessStat(NamedTuple):
    """A process. `state` is the letter from /proc/<pid>/stat, `uid` the effective user."""

    pid: int
    name: str
    state: str
    started_at: float
    uid: int


def read_process(proc: str, pid: int) -> ProcessStat | None:
    """Process with this pid; None if it has ended. Raise OSError if /proc itself cannot be read."""
    booted_at = _boot.booted_at(proc)
    try:
        # Both reads use one descriptor, so that they are of one process even if the pid is reused.
        directory = os.open(f"{proc}/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # This directory (and nothing in it) belongs to the effective uid even if the process is not dumpable,
            # so the far longer /proc/<pid>/status is not needed.
            uid = os.fstat(directory).st_uid
            stat = _read_at(directory, "stat")
        finally:
            os.close(directory)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return parse_stat(stat, uid, booted_at)


def parse_stat(stat: bytes, uid: int, booted_at: float) -> ProcessStat:
    """Process from the content of /proc/<pid>/stat. Raise ValueError if it is something else."""
    # The name may contain anything, including spaces and parentheses; the fields after it may not.
    name_begins, name_ends = stat.index(b"("), stat.rindex(b")")
    fields = stat[name_ends + 2 :].split(None, _MIN_FIELDS)
    if len(fields) < _MIN_FIELDS:
        raise ValueError(f"not the content of /proc/<pid>/stat: {stat!r}")
    return ProcessStat(
        pid=int(stat[:name_begins]),
        name=stat[name_begins + 1 : name_ends].decode("utf-8", "replace"),
        state=fields[0].decode("ascii", "replace"),
        started_at=booted_at + int(fields[_MIN_FIELDS - 1]) / _TICKS_PER_SECOND,
        uid=uid,
    )


def read_boot_time(proc: str) -> float:
    """Boot time of the node. Raise OSError or ValueError if /proc does not have it."""
    with open(f"{proc}/stat", "rb") as stat:
        for line in stat:
            if line.startswith(b"btime "):
                return float(line[6:])
    raise ValueError(f"{proc}/stat has no btime")


def clock_offset() -> float:
    """Wall clock minus time since boot: constant until the clock is set."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


class BootTime:
    """Boot time per root of /proc, read once: /proc/stat is long on a large machine.

    A node may boot with a wrong clock and set it minutes later. That shifts the boot time, which is then read again.
    """

    def __init__(self, offset: Callable[[], float] = clock_offset) -> None:
        self._offset = offset
        self._known: dict[str, tuple[float, float]] = {}

    def booted_at(self, proc: str) -> float:
        """Boot time of the node. Raise as read_boot_time does."""
        offset = self._offset()
        known = self._known.get(proc)
        if known is None or abs(known[1] - offset) > _CLOCK_STEP_SECONDS:
            known = self._known[proc] = (read_boot_time(proc), offset)
        return known[0]


_boot = BootTime()


def _read_at(directory: int, name: str) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        return os.read(file, _STAT_BYTES)
    finally:
        os.close(file)


def read_boot_id(proc: str) -> str | None:
    """The kernel's id of this boot, or None if it cannot be read."""
    try:
        with open(f"{proc}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None
