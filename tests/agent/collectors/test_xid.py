"""XIDs from the kernel log and from driver events, each incident counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.xid import MAX_RECENT, XidCollector, merge_events, parse_uuid, parse_xid, with_uuids
from monitor.agent.gpu import GpuDriverError
from monitor.agent.kernel.lines import FRAGMENTS
from monitor.agent.kmsg import KernelLog, KernelMessage, SharedKernelLog
from monitor.base.text import ELLIPSIS, MAX_TEXT_CHARS
from monitor.facts import XidCount, XidEvent, XidFacts
from tests.nvml import InProcessNvml
from tests.support import HANG_LIMIT_SECONDS, wait_until
from tests.support.clock import FakeClock

pytest_plugins = ["tests.nvml.fixtures"]
NOW = 1_700_000_000.0
BOOTED_AT = NOW - 10_000
ADDRESS = "0000:3b:00.0"
OTHER_ADDRESS = "0000:5e:00.0"

# Message, and its PCI address, code, pid and text. Messages of drivers 340 to 590, as published by users.
MESSAGES: list[tuple[str, tuple[str, int, int | None, str | None] | None]] = [
    (
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
        (ADDRESS, 79, 1234, "pid=1234, name=python, GPU has fallen off the bus."),
    ),
    (
        "NVRM: Xid (PCI:0000:3b:00): 13, pid='<unknown>', name=<unknown>, Graphics Exception: ESR 0x57c730=0xc04000b",
        (ADDRESS, 13, None, "pid='<unknown>', name=<unknown>, Graphics Exception: ESR 0x57c730=0xc04000b"),
    ),
    (
        "NVRM: Xid (PCI:0000:3b:00): 31, Ch 0000001e, engmask 00000101, intr 10000000",
        (ADDRESS, 31, None, "Ch 0000001e, engmask 00000101, intr 10000000"),
    ),
    ("NVRM: Xid (0000:3b:00): 13, 0001 00000000", (ADDRESS, 13, None, "0001 00000000")),
    ("NVRM: Xid (PCI:3b:00): 48, DBE", (ADDRESS, 48, None, "DBE")),
    (
        "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 43, pid=7, name=a, Ch 8",
        (ADDRESS, 43, 7, "pid=7, name=a, Ch 8"),
    ),
    (
        "NVRM: Xid (PCI:0019:01:00): 149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)",
        ("0019:01:00.0", 149, None, "NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)"),
    ),
    ("NVRM: Xid (PCI:0000:3b:00): 62", (ADDRESS, 62, None, None)),
    ("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", (ADDRESS, 79, None, "GPU has fallen off the bus.")),
    ("NVRM: GPU at 0000:3b:00.0 has fallen off the bus.", (ADDRESS, 79, None, "GPU has fallen off the bus.")),
    (
        "NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: (PCI ID: 10de:2204) has\nNVRM: fallen off the bus and is",
        (ADDRESS, 79, None, "GPU has fallen off the bus."),
    ),
    ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05", None),
    ("NVRM: GPU 0000:3b:00.0: GPU serial number is 1560.", None),
    ("NVRM: Xid (PCI:0000:3b:00): soon", None),
    ("NVRM: Xid (nowhere): 79, GPU has fallen off the bus.", None),
    ("NVRM: something has fallen off the bus", None),
    ("NVRM: Xid (", None),
]


def test_a_long_message_is_truncated() -> None:
    event = parse_xid(KernelMessage(NOW, "NVRM: Xid (PCI:0000:3b:00): 79, " + "x" * 8000))
    assert event is not None
    assert event.message == "x" * (MAX_TEXT_CHARS - 1) + ELLIPSIS


@pytest.mark.parametrize(("text", "expect"), MESSAGES, ids=[text[:60] for text, _ in MESSAGES])
def test_messages(text: str, expect: tuple[str, int, int | None, str | None] | None) -> None:
    event = parse_xid(KernelMessage(NOW, text))
    if expect is None:
        assert event is None
    else:
        assert event is not None
        assert (event.pci_bus_id, event.code, event.pid, event.message) == expect
        assert (event.at, event.source) == (NOW, "kernel")


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        ("NVRM: GPU at PCI:0000:3b:00: GPU-2e2b6342-3996", (ADDRESS, "GPU-2e2b6342-3996")),
        ("NVRM: GPU at PCI:0000:3b:00: unknown", None),
        ("NVRM: GPU Board Serial Number: GPU-1", None),
    ],
)
def test_the_log_names_cards(text: str, expect: tuple[str, str] | None) -> None:
    assert parse_uuid(text) == expect


def kernel(at: float, code: int = 31, address: str = ADDRESS) -> XidEvent:
    return XidEvent(at=at, code=code, source="kernel", pci_bus_id=address, pid=7, message="text")


def driver(at: float, code: int = 31, address: str = ADDRESS) -> XidEvent:
    return XidEvent(at=at, code=code, source="nvml", pci_bus_id=address, gpu_uuid="GPU-1")


MERGES: list[tuple[str, list[list[XidEvent]], list[tuple[float, int, str]], dict[tuple[str, int], int]]] = [
    ("nothing", [[]], [], {}),
    ("both at once", [[kernel(100), driver(102)]], [(100, 31, "both")], {(ADDRESS, 31): 1}),
    ("the kernel first", [[kernel(100)], [driver(105)]], [(100, 31, "both")], {(ADDRESS, 31): 1}),
    ("the driver first", [[driver(100)], [kernel(105)]], [(100, 31, "both")], {(ADDRESS, 31): 1}),
    ("just near enough", [[kernel(100)], [driver(110)]], [(100, 31, "both")], {(ADDRESS, 31): 1}),
    ("too far apart", [[kernel(100)], [driver(111)]], [(100, 31, "kernel"), (111, 31, "nvml")], {(ADDRESS, 31): 2}),
    ("other codes", [[kernel(100), driver(100, 43)]], [(100, 31, "kernel"), (100, 43, "nvml")],
     {(ADDRESS, 31): 1, (ADDRESS, 43): 1}),
    ("other GPUs", [[kernel(100), driver(100, address=OTHER_ADDRESS)]], [(100, 31, "kernel"), (100, 31, "nvml")],
     {(ADDRESS, 31): 1, (OTHER_ADDRESS, 31): 1}),
    ("two incidents, each reported twice", [[kernel(100), kernel(101), driver(102), driver(102)]],
     [(100, 31, "both"), (101, 31, "both")], {(ADDRESS, 31): 2}),
    ("three from the kernel, one from the driver", [[kernel(100), kernel(101), kernel(102), driver(102)]],
     [(100, 31, "kernel"), (101, 31, "kernel"), (102, 31, "both")], {(ADDRESS, 31): 3}),
    ("off the bus, reported in two wordings", [[kernel(100, 79), kernel(100.1, 79)]], [(100, 79, "kernel")],
     {(ADDRESS, 79): 1}),
    ("off the bus, reported in two wordings and as an event", [[kernel(100, 79), kernel(100.1, 79)], [driver(104, 79)]],
     [(100, 79, "both")], {(ADDRESS, 79): 1}),
    ("off the bus again, after a reset", [[kernel(100, 79)], [kernel(500, 79)]],
     [(100, 79, "kernel"), (500, 79, "kernel")], {(ADDRESS, 79): 2}),
    ("old event reported late", [[kernel(500)], [kernel(100)]], [(100, 31, "kernel"), (500, 31, "kernel")],
     {(ADDRESS, 31): 2}),
]  # fmt: skip


@pytest.mark.parametrize(("passes", "recent", "counts"), [row[1:] for row in MERGES], ids=[row[0] for row in MERGES])
def test_merging(
    passes: list[list[XidEvent]], recent: list[tuple[float, int, str]], counts: dict[tuple[str, int], int]
) -> None:
    facts = XidFacts()
    for events in passes:
        facts = merge_events(facts, events)
    assert [(event.at, event.code, event.source) for event in facts.recent] == recent
    assert {(count.pci_bus_id, count.code): count.count for count in facts.counts} == counts


def test_what_both_say_is_kept_together() -> None:
    expect = XidEvent(at=100, code=31, source="both", gpu_uuid="GPU-1", pci_bus_id=ADDRESS, pid=7, message="text")
    assert merge_events(XidFacts(), [kernel(100), driver(103)]).recent == (expect,)
    assert merge_events(merge_events(XidFacts(), [driver(100)]), [kernel(103)]).recent == (expect,)


def test_counts_go_on_when_events_are_forgotten() -> None:
    facts = merge_events(XidFacts(), [kernel(100.0 * n) for n in range(MAX_RECENT + 10)])
    assert [event.at for event in facts.recent] == [100.0 * n for n in range(10, MAX_RECENT + 10)]
    assert facts.counts == (
        XidCount(code=31, count=MAX_RECENT + 10, last_at=100.0 * (MAX_RECENT + 9), pci_bus_id=ADDRESS),
    )


def test_uuids_are_filled_in_when_they_become_known() -> None:
    facts = with_uuids(merge_events(XidFacts(), [kernel(100), kernel(100, address=OTHER_ADDRESS)]), {ADDRESS: "GPU-1"})
    assert [event.gpu_uuid for event in facts.recent] == ["GPU-1", None]
    assert [count.gpu_uuid for count in facts.counts] == ["GPU-1", None]


class Log:
    """A kernel log to write to. Times are in seconds relative to NOW."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sequence = 0
        path.write_text("")

    def write(self, after: float, text: str, priority: int = 4) -> None:
        self._sequence += 1
        with self.path.open("a") as file:
            file.write(f"{priority},{self._sequence},{round((10_000 + after) * 1e6)},-;{text}\n")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "kmsg")


def collector_of(log: Log, clock: FakeClock) -> XidCollector:
    shared = SharedKernelLog(KernelLog(str(log.path), FRAGMENTS, BOOTED_AT, clock))
    return XidCollector(shared, clock, driver_timeout=HANG_LIMIT_SECONDS)


def test_both_sources_one_incident_and_what_was_before_the_start(nvml: InProcessNvml, log: Log) -> None:
    nvml.gpu(2, uuid="GPU-2", pci="00000000:3B:00.0")
    log.write(-500, "NVRM: Xid (PCI:0000:3b:00): 63, Row Remapper: New row marked for remapping")
    clock = FakeClock(NOW)
    collector = collector_of(log, clock)
    collector.collect()
    clock.advance(5)
    log.write(3, "NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=python, Ch 00000008")
    nvml.xid(2, 31)
    nvml.xid(0, 43)
    assert collector.collect() == XidFacts(
        counts=(
            XidCount(code=63, count=1, last_at=NOW - 500, gpu_uuid="GPU-2", pci_bus_id=ADDRESS),
            XidCount(code=31, count=1, last_at=NOW + 3, gpu_uuid="GPU-2", pci_bus_id=ADDRESS),
            XidCount(
                code=43,
                count=1,
                last_at=NOW + 5,
                gpu_uuid="GPU-a1000000-0000-4000-8000-000000000000",
                pci_bus_id="0000:10:00.0",
            ),
        ),
        recent=(
            XidEvent(
                at=NOW - 500,
                code=63,
                source="kernel",
                gpu_uuid="GPU-2",
                pci_bus_id=ADDRESS,
                message="Row Remapper: New row marked for remapping",
            ),
            XidEvent(
                at=NOW + 3,
                code=31,
                source="both",
                gpu_uuid="GPU-2",
                pci_bus_id=ADDRESS,
                pid=7,
                message="pid=7, name=python, Ch 00000008",
            ),
            XidEvent(
                at=NOW + 5,
                code=43,
                source="nvml",
                gpu_uuid="GPU-a1000000-0000-4000-8000-000000000000",
                pci_bus_id="0000:10:00.0",
            ),
        ),
    )
    assert [count.count for count in collector.collect().counts] == [1, 1, 1]


def test_what_a_user_wrote_into_the_log_is_no_xid(nvml: InProcessNvml, log: Log) -> None:
    log.write(-5, "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.", priority=12)
    assert collector_of(log, FakeClock(NOW)).collect() == XidFacts()


def test_without_a_driver_the_log_is_enough(nvml: InProcessNvml, log: Log) -> None:
    nvml.unload_driver()
    log.write(-9, "NVRM: GPU at PCI:0000:3b:00: GPU-lost")
    log.write(-8, "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.")
    collector = collector_of(log, FakeClock(NOW))
    assert [(event.code, event.gpu_uuid) for event in collector.collect().recent] == [(79, "GPU-lost")]


def test_without_a_log_events_are_enough(nvml: InProcessNvml, log: Log) -> None:
    log.path.unlink()
    collector = collector_of(log, FakeClock(NOW))
    assert collector.collect() == XidFacts()
    nvml.xid(0, 48)
    assert [event.code for event in collector.collect().recent] == [48]


def test_with_neither_there_is_nothing_to_read(nvml: InProcessNvml, log: Log) -> None:
    log.path.unlink()
    nvml.unload_driver()
    with pytest.raises(AbsentError, match="no NVIDIA driver on this node"):
        collector_of(log, FakeClock(NOW)).collect()


def test_a_driver_that_went_is_a_fault_where_there_is_no_log(nvml: InProcessNvml, log: Log) -> None:
    log.path.unlink()
    collector = collector_of(log, FakeClock(NOW))
    collector.collect()
    nvml.unload_driver()
    for _ in range(2):
        with pytest.raises(GpuDriverError):
            collector.collect()


def test_events_come_again_after_the_driver_was_replaced(nvml: InProcessNvml, log: Log) -> None:
    collector = collector_of(log, FakeClock(NOW))
    collector.collect()
    nvml.reload_driver()
    collector.collect()
    collector.collect()
    nvml.xid(0, 48)
    assert [event.code for event in collector.collect().recent] == [48]


def test_a_hanging_driver_hides_nothing_that_the_log_has(nvml: InProcessNvml, log: Log) -> None:
    clock = FakeClock(NOW)
    collector = collector_of(log, clock)
    collector.collect()
    nvml.xid(0, 43)
    nvml.hang("nvmlEventSetWait_v2")
    log.write(
        1, "NVRM: Xid (PCI:0000:3b:00): 119, pid=1, name=x, Timeout after 6s of waiting for RPC response from GPU0 GSP!"
    )
    clock.advance(5)
    assert [event.code for event in collector.collect().recent] == [119]
    log.write(6, "NVRM: Xid (PCI:0000:3b:00): 120, pid=1, name=x, GSP task exception")
    clock.advance(5)
    assert [event.code for event in collector.collect().recent] == [119, 120]
    nvml.release()
    wait_until(lambda: 43 in [event.code for event in collector.collect().recent], 30, "the late event arrives")
