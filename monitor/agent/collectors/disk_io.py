"""Disk I/O: counters of every disk, and its utilization between two passes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from monitor.agent.mountinfo import MountPoint, Mounts, MountTable, decoded, host_path
from monitor.agent.settings import Paths
from monitor.base.clock import Clock
from monitor.facts import DiskIoFact

_SECTOR_BYTES = 512  # in /proc/diskstats, whatever the disk's sector size
_CDROM_MAJOR_CODE = 11


class _DiskCounters(NamedTuple):
    """One line of /proc/diskstats. Counters only grow, unless they wrap or the device is replaced."""

    reads: int
    sectors_read: int
    writes: int
    sectors_written: int
    busy_ms: int
    queue_ms: int
    in_flight: int  # not a counter


class _DiskRates(NamedTuple):
    """Utilization of one device between two passes."""

    busy_ratio: float | None = None
    queue_length: float | None = None


class DiskIoCollector:
    """Reads /proc/diskstats: all physical disks, and those built on them (LVM, RAID, loop) that carry a mount."""

    name = "disk_io"

    def __init__(self, paths: Paths, clock: Clock = time) -> None:
        self._diskstats = f"{paths.proc}/diskstats"
        self._rootfs = paths.rootfs
        self._block = _BlockDevices(paths.sys)
        self._clock = clock
        self._table = MountTable(paths.proc, clock)
        self._read_at = 0.0
        self._before: dict[str, _DiskCounters] = {}
        self._mounts_by_device: dict[str, tuple[str, ...]] = {}
        self._computed_for: tuple[Mounts, list[str]] | None = None

    def collect(self) -> tuple[DiskIoFact, ...]:
        """One fact per device, in the kernel's order. Raise OSError if /proc cannot be read."""
        rows = self._rows()
        now = self._clock.monotonic()
        mounts = self._reported(self._table.read(), rows)
        counters = {name: _counters(rows[name]) for name in mounts}
        seconds = now - self._read_at
        facts = tuple(
            _fact(name, count, _rates(self._before.get(name), count, seconds), mounts[name])
            for name, count in counters.items()
        )
        self._before, self._read_at = counters, now
        return facts

    def _rows(self) -> dict[str, list[str]]:
        with open(self._diskstats, encoding="utf-8", errors="backslashreplace") as file:
            split = (line.split() for line in file)
            return {fields[2]: fields for fields in split if len(fields) >= 14}

    def _reported(self, mounts: Mounts, rows: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
        """Devices to report, with the mount points on each; recomputed when mounts or devices change."""
        if self._computed_for is None or self._computed_for[0] is not mounts or self._computed_for[1] != list(rows):
            self._computed_for = mounts, list(rows)
            self._mounts_by_device = self._compute_reported(mounts, rows)
        return self._mounts_by_device

    def _compute_reported(self, mounts: Mounts, rows: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
        names = {f"{fields[0]}:{fields[1]}": name for name, fields in rows.items()}
        points: dict[str, list[str]] = {
            name: []
            for name, fields in rows.items()
            if self._block.is_physical(name) and self._block.whole(name) == name and int(fields[0]) != _CDROM_MAJOR_CODE
        }
        for mount in mounts.disks:
            name = names.get(_device_number(mount, self._rootfs))
            for device in sorted(set(self._block.under(name))) if name else ():
                if device in rows:
                    points.setdefault(device, []).append(decoded(mount.point))
        return {name: tuple(points[name]) for name in rows if name in points}


class _BlockDevices:
    """Relations between block devices, from /sys/class/block."""

    def __init__(self, sys: str) -> None:
        self._root = f"{sys}/class/block"

    def whole(self, name: str) -> str:
        """Disk that the device is a partition of, or the device itself."""
        path = self._path(name)
        if not os.path.exists(f"{path}/partition"):
            return name
        return os.path.basename(os.path.dirname(os.readlink(path))).replace("!", "/")

    def is_physical(self, name: str) -> bool:
        return os.path.exists(f"{self._path(self.whole(name))}/device")

    def under(self, name: str) -> Iterator[str]:
        """Disk of the device and, for LVM, RAID and the like, all disks below that."""
        name = self.whole(name)
        yield name
        try:
            below = os.listdir(f"{self._path(name)}/slaves")
        except OSError:  # only devices built on others have that directory
            return
        for part in below:
            yield from self.under(part.replace("!", "/"))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name.replace('/', '!')}"  # as sysfs writes cciss/c0d0


def _device_number(mount: MountPoint, rootfs: str) -> str:
    """Number of a mount's block device. btrfs reports an anonymous one: use that of its source."""
    if mount.number.startswith(b"0:") and mount.source.startswith(b"/dev/"):
        try:
            device = os.stat(host_path(rootfs, mount.source)).st_rdev
        except OSError:
            return decoded(mount.number)
        return f"{os.major(device)}:{os.minor(device)}"
    return decoded(mount.number)


def _counters(fields: list[str]) -> _DiskCounters:
    reads, _, sectors_read, _, writes, _, sectors_written, _, in_flight, busy, queue = map(int, fields[3:14])
    return _DiskCounters(reads, sectors_read, writes, sectors_written, busy, queue, in_flight)


def _rates(before: _DiskCounters | None, after: _DiskCounters, seconds: float) -> _DiskRates:
    """Rates from two readings; unknown if a counter decreased, because it wrapped or the disk was replaced."""
    if before is None or seconds <= 0 or any(new < old for old, new in zip(before[:6], after[:6], strict=True)):
        return _DiskRates()
    return _DiskRates(
        busy_ratio=min(1.0, (after.busy_ms - before.busy_ms) / 1000 / seconds),
        queue_length=(after.queue_ms - before.queue_ms) / 1000 / seconds,
    )


def _fact(name: str, count: _DiskCounters, rates: _DiskRates, mounts: tuple[str, ...]) -> DiskIoFact:
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
