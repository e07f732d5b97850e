"""Disk I/O: writes to a real disk, and recorded device trees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.agent.collectors.disk_io import DiskIoCollector
from monitor.facts import DiskIoFact
from tests.support.clock import FakeClock
from tests.support.filesystems import ext4_disk, node_paths

# Names, numbers and links as on a server with Debian 12: a partitioned disk with LVM on it, an NVMe disk, a software
# RAID of two disks, a CD drive, and loop, ram and zram devices.
NUMBERS = {
    "sda": "8:0", "sda1": "8:1", "sda2": "8:2", "dm-0": "254:0", "dm-1": "254:1", "nvme0n1": "259:0",
    "nvme0n1p1": "259:1", "sdb": "8:16", "sdc": "8:32", "md0": "9:0", "sr0": "11:0", "loop0": "7:0", "loop1": "7:1",
    "ram0": "1:0", "zram0": "253:0", "cciss/c0d0": "104:0", "cciss/c0d0p1": "104:1", "sdd": "8:48",
}  # fmt: skip
PHYSICAL = ("sda", "nvme0n1", "sdb", "sdc", "sr0", "cciss/c0d0", "sdd")
PARTITIONS = {"sda1": "sda", "sda2": "sda", "nvme0n1p1": "nvme0n1", "cciss/c0d0p1": "cciss/c0d0"}
BUILT_ON = {"dm-0": ["sda2"], "dm-1": ["sda2"], "md0": ["sdb", "sdc"]}
MOUNTS = {"254:0": "/", "8:1": "/boot", "259:1": "/data", "9:0": "/raid", "7:1": "/image", "104:1": "/old"}


class Node:
    """/proc and /sys of a node, as files."""

    def __init__(self, root: Path) -> None:
        self.proc, self._sys, self._root = root / "proc", root / "sys", root
        (self.proc / "1").mkdir(parents=True)
        (self._sys / "class" / "block").mkdir(parents=True)
        for name in NUMBERS:
            self._device(name)
        self.mount(MOUNTS)
        self.count({})

    def _device(self, name: str) -> None:
        whole = PARTITIONS.get(name, name).replace("/", "!")
        directory = self._sys / "devices" / whole
        if name in PARTITIONS:
            directory /= name.replace("/", "!")
        directory.mkdir(parents=True, exist_ok=True)
        (self._sys / "class" / "block" / directory.name).symlink_to(f"../../{directory.relative_to(self._sys)}")
        if name in PARTITIONS:
            (directory / "partition").write_text("1\n")
        if name in PHYSICAL:
            (directory / "device").mkdir()
        for part in BUILT_ON.get(name, ()):
            (directory / "slaves" / part).mkdir(parents=True)

    def mount(self, points: dict[str, str], fstype: str = "ext4", source: str = "/dev/x") -> None:
        lines = [f"30 27 {number} / {point} rw - {fstype} {source} rw\n" for number, point in points.items()]
        (self.proc / "1" / "mountinfo").write_text("".join(lines))

    def count(self, counters: dict[str, str]) -> None:
        """Write counters: reads, merged, sectors, ms, the same for writes, then in flight, busy ms, queue ms."""
        lines = [
            f"{number.replace(':', '  ')} {name} {counters.get(name, ' '.join('0' * 11))} 0 0 0 0 0 0\n"
            for name, number in NUMBERS.items()
        ]
        (self.proc / "diskstats").write_text("".join(lines))

    def collector(self, clock: FakeClock) -> DiskIoCollector:
        paths = node_paths(proc=str(self.proc), sys=str(self._sys), rootfs=str(self._root))
        return DiskIoCollector(paths, clock)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def device(facts: tuple[DiskIoFact, ...], name: str) -> DiskIoFact:
    (fact,) = [fact for fact in facts if fact.device == name]
    return fact


def test_which_devices_are_told_of_and_what_lies_on_them(node: Node, clock: FakeClock) -> None:
    assert {fact.device: fact.mounts for fact in node.collector(clock).collect()} == {
        "sda": ("/", "/boot"),  # one through LVM
        "dm-0": ("/",),
        "nvme0n1": ("/data",),
        "sdb": ("/raid",),
        "sdc": ("/raid",),
        "md0": ("/raid",),
        "loop1": ("/image",),
        "cciss/c0d0": ("/old",),
        "sdd": (),  # physical: reported even if nothing is mounted
    }


def test_mounts_that_change_are_followed(node: Node, clock: FakeClock) -> None:
    one = node.collector(clock)
    one.collect()
    node.mount({"8:48": "/new"})
    after = {fact.device: fact.mounts for fact in one.collect()}
    assert after["sdd"] == ("/new",)
    assert "loop1" not in after


def test_totals_count_in_bytes_and_seconds(node: Node, clock: FakeClock) -> None:
    node.count({"sda": "10 1 2000 30 40 2 6000 70 3 1500 9000"})
    fact = device(node.collector(clock).collect(), "sda")
    assert (fact.reads_total, fact.read_bytes_total) == (10, 2000 * 512)
    assert (fact.writes_total, fact.written_bytes_total) == (40, 6000 * 512)
    assert (fact.busy_seconds_total, fact.queue_seconds_total, fact.in_flight) == (1.5, 9.0, 3)


BEFORE = "10 0 2000 0 40 0 6000 0 0 1000 9000"
# name, counters fifteen seconds later, busy ratio, queue length
RATES: list[tuple[str, str, float | None, float | None]] = [
    ("idle", BEFORE, 0.0, 0.0),
    ("half busy", "11 0 2000 0 40 0 6000 0 9 8500 9000", 0.5, 0.0),
    ("saturated", "11 0 2000 0 40 0 6000 0 9 16000 489000", 1.0, 32.0),
    ("the kernel's rounding", "11 0 2000 0 40 0 6000 0 9 16100 9000", 1.0, 0.0),
    ("the queue's counter wrapped", "11 0 2000 0 40 0 6000 0 9 8500 5", None, None),
    ("another disk in its place", "1 0 8 0 0 0 0 0 0 2000 10000", None, None),
]


@pytest.mark.parametrize(("after", "busy", "queue"), [row[1:] for row in RATES], ids=[row[0] for row in RATES])
def test_rates_over_the_last_interval(
    node: Node, clock: FakeClock, after: str, busy: float | None, queue: float | None
) -> None:
    one = node.collector(clock)
    node.count({"sda": BEFORE})
    first = device(one.collect(), "sda")
    assert (first.busy_ratio, first.queue_length) == (None, None)  # there is no interval yet
    clock.advance(15)
    node.count({"sda": after})
    second = device(one.collect(), "sda")
    assert (second.busy_ratio, second.queue_length) == (busy, queue)


def test_after_a_wrap_rates_come_back(node: Node, clock: FakeClock) -> None:
    one = node.collector(clock)
    for counters in (BEFORE, "1 0 8 0 0 0 0 0 0 100 100"):
        node.count({"sda": counters})
        one.collect()
        clock.advance(10)
    node.count({"sda": "1 0 8 0 0 0 0 0 0 1100 100"})
    assert device(one.collect(), "sda").busy_ratio == 0.1


def test_two_passes_at_the_same_moment_give_no_rates(node: Node, clock: FakeClock) -> None:
    one = node.collector(clock)
    one.collect()
    assert device(one.collect(), "sda").busy_ratio is None


def test_kernels_of_any_age_and_lines_of_none(node: Node, clock: FakeClock) -> None:
    (node.proc / "diskstats").write_text(
        "8 0 sda 1 0 8 0 0 0 0 0 0 5 5\n8 16 sdb 1 2\n\n8 32 sdc 1 0 8 0 0 0 0 0 0 5 5 1 1\n"
    )
    assert [fact.device for fact in node.collector(clock).collect()] == ["sda", "sdc"]


def test_btrfs_is_found_by_its_source(node: Node, clock: FakeClock, tmp_path: Path) -> None:
    (tmp_path / "dev" / "mapper").mkdir(parents=True)
    (tmp_path / "dev" / "mapper" / "pool").symlink_to("/dev/null")  # any device: only its number, 1:3, matters
    node.mount({"0:40": "/pool"}, "btrfs", "/dev/mapper/pool")
    with (node.proc / "diskstats").open("a") as file:
        file.write(f"1 3 dm-7 {' '.join('0' * 11)}\n")
    assert device(node.collector(clock).collect(), "dm-7").mounts == ("/pool",)


def test_without_diskstats_it_fails(tmp_path: Path, clock: FakeClock) -> None:
    with pytest.raises(FileNotFoundError):
        DiskIoCollector(node_paths(proc=str(tmp_path)), clock).collect()


def test_a_real_disk_that_is_written_to(tmp_path: Path) -> None:
    with ext4_disk(tmp_path) as point:
        one = DiskIoCollector(node_paths())
        (before,) = [fact for fact in one.collect() if str(point) in fact.mounts]
        assert before.device.startswith("loop")
        assert before.busy_ratio is None
        file = os.open(point / "file", os.O_WRONLY | os.O_CREAT)
        try:
            for _ in range(20):
                os.write(file, b"x" * 500_000)
                os.fsync(file)
        finally:
            os.close(file)
        (after,) = [fact for fact in one.collect() if str(point) in fact.mounts]
    assert after.written_bytes_total - before.written_bytes_total >= 20 * 500_000
    assert after.busy_ratio is not None
    assert 0.0 <= after.busy_ratio <= 1.0
    assert after.queue_length is not None
    assert after.queue_length >= 0.0
