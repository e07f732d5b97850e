"""The summary of kernel events stays small and hides nothing."""

from __future__ import annotations

from monitor.agent.kernel.lines import KernelLine
from monitor.agent.kernel.summary import MAX_RECENT, add_lines
from monitor.facts.kernel import KernelCount, KernelEvent, KernelEventKind, KernelFacts

DISK = KernelLine(KernelEventKind.DISK_ERROR, "I/O error, dev sda, sector 1", "sda")
HUNG = KernelLine(KernelEventKind.HUNG_TASK, "INFO: task x:1 blocked", "x")
MINUTE = 60.0


def test_equal_lines_within_a_minute_are_one_event() -> None:
    later = DISK._replace(message="I/O error, dev sda, sector 9")
    facts = add_lines(KernelFacts(), [(600.0, DISK), (601.0, DISK), (659.0, later), (661.0, DISK)], 3)
    assert facts == KernelFacts(
        counts=(KernelCount(kind="disk-error", count=4, last_at=661.0),),
        recent=(
            KernelEvent(kind="disk-error", since=600.0, at=659.0, count=3, device="sda", message=later.message),
            KernelEvent(kind="disk-error", since=661.0, at=661.0, device="sda", message=DISK.message),
        ),
        skipped_lines=3,
    )


def test_lines_of_several_reads_are_one_event() -> None:
    at_once = add_lines(KernelFacts(), [(600.0, DISK), (610.0, DISK)], 0)
    assert add_lines(add_lines(KernelFacts(), [(600.0, DISK)], 0), [(610.0, DISK)], 0) == at_once


def test_other_devices_are_other_events() -> None:
    facts = add_lines(KernelFacts(), [(600.0, DISK), (600.0, DISK._replace(device="sdb"))], 0)
    assert [(event.device, event.count) for event in facts.recent] == [("sda", 1), ("sdb", 1)]


def test_a_flood_of_different_devices_keeps_the_newest_and_every_other_kind() -> None:
    flood = [(1000.0 + number, DISK._replace(device=f"sd{number}")) for number in range(10 * MAX_RECENT)]
    facts = add_lines(KernelFacts(), [(0.0, HUNG), *flood], 0)
    assert len(facts.recent) == MAX_RECENT
    assert facts.recent[0].kind == "hung-task"
    assert facts.recent[-1].device == f"sd{10 * MAX_RECENT - 1}"
    assert {count.kind: count.count for count in facts.counts} == {"hung-task": 1, "disk-error": 10 * MAX_RECENT}
