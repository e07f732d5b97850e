"""The collector of kernel events, on a file with records of /dev/kmsg and on a FIFO."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.kernel import KernelCollector
from monitor.agent.kernel.lines import FRAGMENTS, KernelLine, classify
from monitor.agent.kmsg import MAX_LINES_PER_FRAGMENT, MAX_LINES_PER_READ, KernelLog, SharedKernelLog
from monitor.facts.kernel import KernelCount, KernelEvent
from tests.support.clock import FakeClock

NOW = 1_700_000_000.0
BOOTED_AT = NOW - 10_000
ID = "65a1b6ad09655b3f1475ede1aa0061a97c0d1ada9f2b2acac959afbc92094463"


def collector_of(path: Path, clock: FakeClock | None = None) -> KernelCollector:
    return KernelCollector(SharedKernelLog(KernelLog(str(path), FRAGMENTS, BOOTED_AT, clock or FakeClock(NOW))))


def record(number: int, text: str, seconds: float = 9000.0, priority: int = 3) -> str:
    return f"{priority},{number},{round(seconds * 1e6)},-;{text}\n"


def test_events_with_their_containers(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    oom = f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/docker/{ID},task=python3,pid=1,uid=0"
    disk = "I/O error, dev sda, sector 2048 op 0x0:(READ)"
    path.write_text(record(1, "usb 1-1: new device") + record(2, disk) + record(3, disk, 9001.0) + record(4, oom))
    collector = collector_of(path)
    facts = collector.collect()
    assert facts.counts == (
        KernelCount(kind="disk-error", count=2, last_at=NOW - 999),
        KernelCount(kind="container-oom", count=1, last_at=NOW - 1000),
    )
    assert facts.recent == (
        KernelEvent(
            kind="container-oom", since=NOW - 1000, at=NOW - 1000, device="python3", container_id=ID, message=oom
        ),
        KernelEvent(kind="disk-error", since=NOW - 1000, at=NOW - 999, count=2, device="sda", message=disk),
    )
    assert collector.collect() is facts  # nothing new: the part of the snapshot is unchanged


def test_what_a_user_wrote_into_the_log_is_not_an_event(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    path.write_text(record(1, "nfs: server nas.lab not responding, still trying", priority=12))
    assert collector_of(path).collect().recent == ()


def test_lines_that_arrive_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "kmsg"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    try:
        collector = collector_of(path)
        assert collector.collect().recent == ()
        os.write(writer, record(1, "nfs: server nas.lab not responding, still trying").encode())
        assert [event.device for event in collector.collect().recent] == ["nas.lab"]
    finally:
        os.close(reader)
        os.close(writer)


def test_a_log_that_may_not_be_read_is_absent(tmp_path: Path) -> None:
    with pytest.raises(AbsentError, match="the kernel log cannot be read"):
        collector_of(tmp_path / "none").collect()


def test_a_burst_costs_bounded_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classified: list[str] = []

    def counting(text: str) -> KernelLine | None:
        classified.append(text)
        return classify(text)

    monkeypatch.setattr("monitor.agent.collectors.kernel.classify", counting)
    path = tmp_path / "kmsg"
    burst = "".join(record(number, "nvme nvme0: a line without a class") for number in range(100_000))
    path.write_text(burst + record(100_000, "INFO: task python:7 blocked for more than 120 seconds."))
    collector, runs = collector_of(path), 0
    while not collector.collect().recent:
        runs += 1
        assert len(classified) <= runs * MAX_LINES_PER_FRAGMENT
    assert 1 <= runs <= 100_000 // MAX_LINES_PER_READ
    assert collector.collect().skipped_lines >= 100_000 - (runs + 1) * MAX_LINES_PER_FRAGMENT
