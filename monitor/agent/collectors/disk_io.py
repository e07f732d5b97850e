"""Disk I/O: how busy every disk is. The kernel counts; what happened between two passes is the difference."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from monitor.agent.mountinfo import Mount, Mounts, MountTable, below, label
from monitor.agent.settings import Paths
from monitor.base.clock import Clock
from monitor.facts import DiskIoFact

_SECTOR_BYTES = 512  # in /proc/diskstats, whatever the disk's own sectors are
_CDROM_MAJOR = 11


class _Counters(NamedTuple):
    """One line of /proc/diskstats. All only ever grow, until they wrap or the device is another one."""

    reads: int
    sectors_read: int
    writes: int
    sectors_written: int
    busy_ms: int
    queue_ms: int
    in_flight: int  # not a counter


class _Rates(NamedTuple):
    """What two readings of one device say about the time between them."""

    busy_ratio: float | None = None
    queue_length: float | None = None


class DiskIoCollector:
    """Reads /proc/diskstats: all physical disks, and those made of them (LVM, RAID, loop) that carry a mount."""

    name = "disk_io"

    def __init__(self, paths: Paths, clock: Clock = time) -> None:
        self._diskstats = f"{paths.proc}/diskstats"
        self._rootfs = paths.rootfs
        self._block = _Block(paths.sys)
        self._clock = clock
        self._table = MountTable(paths.proc, clock)
        self._read_at = 0.0
        self._before: dict[str, _Counters] = {}
        self._carried: dict[str, tuple[str, ...]] = {}
        self._carried_for: tuple[Mounts, list[str]] | None = None

    def collect(self) -> tuple[DiskIoFact, ...]:
        """Return one fact a device, in the kernel's order. Raise OSError when /proc cannot be read."""
        rows = self._rows()
        now = self._clock.monotonic()
        carried = self._carried_by(self._table.read(), rows)
        counters = {name: _counters(rows[name]) for name in carried}
        seconds = now - self._read_at
        facts = tuple(
            _fact(name, count, _rates(self._before.get(name), count, seconds), carried[name])
            for name, count in counters.items()
        )
        self._before, self._read_at = counters, now
        return facts

    def _rows(self) -> dict[str, list[str]]:
        with open(self._diskstats, encoding="utf-8", errors="backslashreplace") as file:
            split = (line.split() for line in file)
            return {fields[2]: fields for fields in split if len(fields) >= 14}

    def _carried_by(self, mounts: Mounts, rows: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
        """Return the devices to report, each with the mount points on it. Worked out again when either list changed."""
        if self._carried_for is None or self._carried_for[0] is not mounts or self._carried_for[1] != list(rows):
            self._carried_for = mounts, list(rows)
            self._carried = self._work_out_carried(mounts, rows)
        return self._carried

    def _work_out_carried(self, mounts: Mounts, rows: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
        names = {f"{fields[0]}:{fields[1]}": name for name, fields in rows.items()}
        carried: dict[str, list[str]] = {
            name: []
            for name, fields in rows.items()
            if self._block.is_physical(name) and self._block.whole(name) == name and int(fields[0]) != _CDROM_MAJOR
        }
        for mount in mounts.disks:
            name = names.get(_device_number(mount, self._rootfs))
            for device in sorted(set(self._block.under(name))) if name else ():
                if device in rows:
                    carried.setdefault(device, []).append(label(mount.point))
        return {name: tuple(carried[name]) for name in rows if name in carried}


class _Block:
    """How block devices are made of one another, from /sys/class/block."""

    def __init__(self, sys: str) -> None:
        self._root = f"{sys}/class/block"

    def whole(self, name: str) -> str:
        """Given a device, return the disk that it is a partition of, or itself."""
        path = self._path(name)
        if not os.path.exists(f"{path}/partition"):
            return name
        return os.path.basename(os.path.dirname(os.readlink(path))).replace("!", "/")

    def is_physical(self, name: str) -> bool:
        return os.path.exists(f"{self._path(self.whole(name))}/device")

    def under(self, name: str) -> Iterator[str]:
        """Given a device, yield the disk it is on and, for LVM, RAID and the like, all disks below that."""
        name = self.whole(name)
        yield name
        try:
            below = os.listdir(f"{self._path(name)}/slaves")
        except OSError:  # only devices made of others have that directory
            return
        for part in below:
            yield from self.under(part.replace("!", "/"))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name.replace('/', '!')}"  # sysfs writes cciss/c0d0 so


def _device_number(mount: Mount, rootfs: str) -> str:
    """Given a mount, return the number of its block device. btrfs has none of its own: ask for that of its source."""
    if mount.number.startswith(b"0:") and mount.source.startswith(b"/dev/"):
        try:
            device = os.stat(below(rootfs, mount.source)).st_rdev
        except OSError:
            return label(mount.number)
        return f"{os.major(device)}:{os.minor(device)}"
    return label(mount.number)


def _counters(fields: list[str]) -> _Counters:
    reads, _, sectors_read, _, writes, _, sectors_written, _, in_flight, busy, queue = map(int, fields[3:14])
    return _Counters(reads, sectors_read, writes, sectors_written, busy, queue, in_flight)


def _rates(before: _Counters | None, after: _Counters, seconds: float) -> _Rates:
    """Given two readings, return what they say. Nothing when a counter went back: it wrapped, or the disk is new."""
    if before is None or seconds <= 0 or any(new < old for old, new in zip(before[:6], after[:6], strict=True)):
        return _Rates()
    return _Rates(
        busy_ratio=min(1.0, (after.busy_ms - before.busy_ms) / 1000 / seconds),
        queue_length=(after.queue_ms - before.queue_ms) / 1000 / seconds,
    )


def _fact(name: str, count: _Counters, rates: _Rates, mounts: tuple[str, ...]) -> DiskIoFact:
    return DiskIoFact(
        device=name,
        read_bytes_total=count.sectors_read * _SECTOR_BYTES,
        written_bytes_total=count.sectors_written * _SECTOR_BYTES,
        reads_total=count.reads,
        writes_total=count.writes,
        busy_seconds_total=count.busy_ms / 1000,
        queue_seconds_total=count.queue_ms / 1000,
        in_flight=count.in_flight,
        busy_ratio=rates.busy_ratio,
        queue_length=rates.queue_length,
        mounts=mounts,
    )
