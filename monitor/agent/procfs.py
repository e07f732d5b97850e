"""One process as /proc shows it: what it is called, how it is, since when it runs and for whom.

Command lines and environments are not read: they carry secrets.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple

_TICKS = os.sysconf("SC_CLK_TCK")
# Places of the fields of /proc/<pid>/stat behind the name, which is in parentheses.
_STATE, _STARTED = 0, 19
_STAT_SIZE = 4096  # more than 52 numbers can take
_STEP_SECONDS = 1.0


class ProcessStat(NamedTuple):
    """One process. `state` is the letter of /proc/<pid>/stat, `uid` the effective user."""

    pid: int
    name: str
    state: str
    started_at: float
    uid: int


def read_process(proc: str, pid: int) -> ProcessStat | None:
    """Given the root of /proc and a pid, return that process, or None when there is none by now.

    Raise OSError when /proc itself cannot be read: then nothing is known about any process.
    """
    booted_at = _boot.booted_at(proc)
    try:
        # Both readings go through one descriptor, so that they are of one process even when the pid is reused.
        directory = os.open(f"{proc}/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # The kernel gives this directory (and nothing in it) the effective uid even when the process is not
            # dumpable, so there is no need for the far longer /proc/<pid>/status.
            uid = os.fstat(directory).st_uid
            stat = _read_at(directory, "stat")
        finally:
            os.close(directory)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return parse_stat(stat, uid, booted_at)


def parse_stat(stat: bytes, uid: int, booted_at: float) -> ProcessStat:
    """Given the content of /proc/<pid>/stat, return the process. Raise ValueError if that is not what it is."""
    # The name may hold anything, spaces and parentheses too; what follows it may not.
    name_begins, name_ends = stat.index(b"("), stat.rindex(b")")
    fields = stat[name_ends + 2 :].split(None, _STARTED + 1)
    if len(fields) <= _STARTED:
        raise ValueError(f"not the content of /proc/<pid>/stat: {stat!r}")
    return ProcessStat(
        pid=int(stat[:name_begins]),
        name=stat[name_begins + 1 : name_ends].decode("utf-8", "replace"),
        state=fields[_STATE].decode("ascii", "replace"),
        started_at=booted_at + int(fields[_STARTED]) / _TICKS,
        uid=uid,
    )


def read_boot_time(proc: str) -> float:
    """Given the root of /proc, return when the node was booted. Raise OSError or ValueError if it does not say."""
    with open(f"{proc}/stat", "rb") as stat:
        for line in stat:
            if line.startswith(b"btime "):
                return float(line[6:])
    raise ValueError(f"{proc}/stat has no btime")


def clock_offset() -> float:
    """Return the difference of wall clock and time since boot: constant until somebody sets the clock."""
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


class BootTime:
    """The boot time per root of /proc, read once: /proc/stat is long on a large machine.

    A node may boot with a wrong clock and set it minutes later. That moves the boot time, so it is then read again.
    """

    def __init__(self, offset: Callable[[], float] = clock_offset) -> None:
        self._offset = offset
        self._known: dict[str, tuple[float, float]] = {}

    def booted_at(self, proc: str) -> float:
        """Given the root of /proc, return when the node was booted. Raise as read_boot_time does."""
        offset = self._offset()
        known = self._known.get(proc)
        if known is None or abs(known[1] - offset) > _STEP_SECONDS:
            known = self._known[proc] = (read_boot_time(proc), offset)
        return known[0]


_boot = BootTime()


def _read_at(directory: int, name: str) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
    try:
        return os.read(file, _STAT_SIZE)
    finally:
        os.close(file)
