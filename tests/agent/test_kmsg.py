"""The kernel log: a file with records of /dev/kmsg, and /dev/kmsg of this machine."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from monitor.agent.kmsg import (
    MAX_LINES_PER_FRAGMENT,
    MAX_LINES_PER_READ,
    MAX_QUEUED_MESSAGES,
    KernelLog,
    KernelMessage,
    KernelRecord,
    SharedKernelLog,
    parse_record,
)
from tests.support import need
from tests.support.clock import FakeClock

NOW = 1_700_000_000.0
BOOTED_AT = NOW - 10_000
FORGED = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=forged, GPU has fallen off the bus."

RECORDS = [
    ("of the kernel", "4,1280,5000000,-;NVRM: hello", KernelRecord(1280, 5.0, "NVRM: hello")),
    ("with more fields than we know", "6,7,1,-,caller=T1;NVRM: x", KernelRecord(7, 1e-6, "NVRM: x")),
    ("a fragment", "4,8,2000000,c;NVRM: begins", KernelRecord(8, 2.0, "NVRM: begins")),
    ("with a semicolon in it", "4,8,2000000,-;a;b", KernelRecord(8, 2.0, "a;b")),
    ("of several lines", "4,8,2000000,-;NVRM: a\\x0aNVRM: b", KernelRecord(8, 2.0, "NVRM: a\nNVRM: b")),
    ("of a user (facility 1)", "12,1280,5000000,-;NVRM: hello", None),
    ("of a service (facility 3)", "28,1280,5000000,-;NVRM: hello", None),
    ("not a record", "NVRM: hello", None),
    ("further line of a record", " DEVICE=NVRM", None),
    ("further line that looks like a record", " 4,1280,5000000,-;NVRM: hello", None),
    ("cut off", "4,128", None),
    ("empty", "", None),
]


@pytest.mark.parametrize(("line", "expect"), [row[1:] for row in RECORDS], ids=[row[0] for row in RECORDS])
def test_records(line: str, expect: KernelRecord | None) -> None:
    assert parse_record(line) == expect


def log_of(path: Path, clock: FakeClock | None = None) -> KernelLog:
    return KernelLog(str(path), ("NVRM",), booted_at=BOOTED_AT, clock=clock or FakeClock(NOW))


def test_each_message_once_and_only_those_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_text(
        "6,1,1000000,-;usb 1-1: new device\n SUBSYSTEM=usb\n DEVICE=NVRM-1\n"
        "4,2,2000000,-;NVRM: one\n SUBSYSTEM=pci\n"
        "12,3,3000000,-;NVRM: forged\n"
    )
    log = log_of(path)
    assert log.read() == [KernelMessage(BOOTED_AT + 2, "NVRM: one")]
    assert log.read() == []
    with path.open("a") as file:
        file.write("4,4,9999999999,-;NVRM: two\n4,5,9999999999,-;NVRM: hal")
        file.flush()
        assert [message.text for message in log.read()] == ["NVRM: two"]
        file.write("f\n")
    assert [message.text for message in log.read()] == ["NVRM: half"]
    log.close()


def test_a_log_longer_than_one_read(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_text("".join(f"4,{n},{n}000000,-;NVRM: message {n} {'x' * 100}\n" for n in range(1000)))
    log = log_of(path)
    assert [message.text.split()[2] for message in log.read()] == [str(n) for n in range(1000)]
    log.close()


@pytest.mark.parametrize(
    ("name", "since_boot", "expect"),
    [
        ("in between: as the log says", 10_030, NOW + 30),
        ("the log's clock is slow: not before it was last read", 9_000, NOW),
        ("the log's clock is fast: not in the future", 20_000, NOW + 60),
    ],
)
def test_a_new_message_was_written_since_the_last_reading(
    tmp_path: Path, name: str, since_boot: int, expect: float
) -> None:
    path, clock = tmp_path / "kmsg", FakeClock(NOW)
    path.write_text("4,1,1000000,-;NVRM: old\n")
    log = log_of(path, clock)
    assert [message.at for message in log.read()] == [BOOTED_AT + 1]
    clock.advance(60)
    with path.open("a") as file:
        file.write(f"4,2,{since_boot}000000,-;NVRM: new\n")
    assert [message.at for message in log.read()] == [expect]
    log.close()


def test_overwritten_records_are_passed_over_and_a_failure_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_text("")
    one, two, three = (f"4,{n},{n}000000,-;NVRM: {n}\n".encode() for n in (1, 2, 3))
    overwritten, broken, end = OSError(errno.EPIPE, ""), OSError(errno.EIO, "broken"), BlockingIOError()
    answers: list[bytes | OSError] = [one, overwritten, two, end, broken, one, two, three, end]

    def read(_file: int, _size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    log = KernelLog(str(path), ("NVRM",), BOOTED_AT, FakeClock(NOW), read)
    assert [message.text for message in log.read()] == ["NVRM: 1", "NVRM: 2"]
    with pytest.raises(OSError, match="broken"):
        log.read()
    assert [message.text for message in log.read()] == ["NVRM: 3"]
    log.close()


class Device:
    """Returns one record per read, as /dev/kmsg does, and counts the reads. None: records were overwritten."""

    def __init__(self, *records: bytes | None) -> None:
        self.records = list(reversed(records))
        self.reads = 0

    def read(self, _file: int, _size: int) -> bytes:
        self.reads += 1
        if not self.records:
            raise BlockingIOError
        record = self.records.pop()
        if record is None:
            raise OSError(errno.EPIPE, "")
        return record


def log_on(device: Device, tmp_path: Path, *fragments: str) -> KernelLog:
    path = tmp_path / "kmsg"
    path.write_text("")
    return KernelLog(str(path), fragments, BOOTED_AT, FakeClock(NOW), device.read)


def record(number: int, text: str) -> bytes:
    return f"4,{number},{number},-;{text}\n".encode()


def test_a_burst_is_read_in_bounded_steps_and_nothing_is_lost(tmp_path: Path) -> None:
    burst = [record(number, "usb 1-1: new device") for number in range(100_000)]
    device = Device(*burst, record(100_000, "NVRM: after the burst"))
    log = log_on(device, tmp_path, "NVRM")
    for step in range(100_000 // MAX_LINES_PER_READ):
        assert log.read() == []
        assert device.reads == (step + 1) * MAX_LINES_PER_READ
    assert [message.text for message in log.read()] == ["NVRM: after the burst"]
    assert log.skipped == 0
    log.close()


def test_a_flood_of_one_fragment_is_limited_and_hides_no_other(tmp_path: Path) -> None:
    flood = [record(number, "NVRM: again") for number in range(MAX_LINES_PER_FRAGMENT + 50)]
    log = log_on(Device(*flood, record(9999, "AER: rare")), tmp_path, "NVRM", "AER")
    texts = [message.text for message in log.read()]
    assert texts == ["NVRM: again"] * MAX_LINES_PER_FRAGMENT + ["AER: rare"]
    assert log.skipped == 50
    log.close()


def test_what_a_user_writes_does_not_count_against_the_limit(tmp_path: Path) -> None:
    forged = [f"12,{number},1,-;NVRM: forged\n".encode() for number in range(2 * MAX_LINES_PER_FRAGMENT)]
    log = log_on(Device(*forged, record(9999, "NVRM: real")), tmp_path, "NVRM")
    assert [message.text for message in log.read()] == ["NVRM: real"]
    assert log.skipped == 0
    log.close()


def test_overwritten_lines_are_counted(tmp_path: Path) -> None:
    log = log_on(Device(record(7, "NVRM: 7"), None, record(100, "NVRM: 100")), tmp_path, "NVRM")
    assert [message.text for message in log.read()] == ["NVRM: 7", "NVRM: 100"]
    assert log.skipped == 92
    log.close()


def test_every_subscriber_gets_every_message_once(tmp_path: Path) -> None:
    device = Device(record(1, "NVRM: 1"))
    shared = SharedKernelLog(log_on(device, tmp_path, "NVRM"))
    one, other = shared.subscribe(), shared.subscribe()
    assert [message.text for message in one()] == ["NVRM: 1"]
    device.records = [record(2, "NVRM: 2")]
    assert [message.text for message in other()] == ["NVRM: 1", "NVRM: 2"]
    assert [message.text for message in one()] == ["NVRM: 2"]
    assert (one(), other()) == ([], [])


def test_a_subscriber_that_never_reads_costs_bounded_memory(tmp_path: Path) -> None:
    device = Device()
    shared = SharedKernelLog(log_on(device, tmp_path, "NVRM"))
    reads, sleeps = shared.subscribe(), shared.subscribe()
    for step in range(MAX_QUEUED_MESSAGES // MAX_LINES_PER_FRAGMENT + 2):
        numbers = range(step * MAX_LINES_PER_FRAGMENT, (step + 1) * MAX_LINES_PER_FRAGMENT)
        device.records = [record(number, "NVRM: x") for number in reversed(numbers)]
        assert len(reads()) == MAX_LINES_PER_FRAGMENT
    assert len(sleeps()) == MAX_QUEUED_MESSAGES


def test_a_log_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        log_of(tmp_path / "none").read()


def test_the_real_log_is_read_to_its_end_and_what_a_user_writes_is_not_the_kernel(tmp_path: Path) -> None:
    need(os.access("/dev/kmsg", os.W_OK), "root, to write to /dev/kmsg")
    everything = KernelLog("/dev/kmsg", ("",))
    messages = everything.read()
    assert messages
    assert all(message.at <= time.time() for message in messages)
    tail = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.lseek(tail, 0, os.SEEK_END)
        # Priority <2> requests facility 0, the kernel. A record appears once its line is complete.
        Path("/dev/kmsg").write_text(f"<2>{FORGED}\n")
        assert FORGED in os.read(tail, 8192).decode()  # it is in the log
    finally:
        os.close(tail)
    assert FORGED not in [message.text for message in everything.read()]
    everything.close()
