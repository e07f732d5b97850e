from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import structs

from monitor.detect.rules.disk_io_saturated import RULE
from monitor.facts.findings import Finding
from monitor.facts.gpu import GpuProcessFact
from monitor.facts.storage import DiskIoFact
from tests.detect.builders_storage import NOW, Continuous, Watch, agent, brief, container, repeated, silent, text

STEP = 15.0


def io(busy: float | None, queue: float | None, **more: Any) -> DiskIoFact:
    fields: dict[str, Any] = {"device": "sda", "mounts": ("/data", "/home")}
    totals: dict[str, Any] = dict.fromkeys(
        ("read_bytes_total", "written_bytes_total", "reads_total", "writes_total"), 0
    ) | dict.fromkeys(("busy_seconds_total", "queue_seconds_total"), 0.0)
    return DiskIoFact(busy_ratio=busy, queue_length=queue, **(fields | totals | more))


def follow(watch: Watch, samples: Iterable[DiskIoFact], start: float = 0.0, **parts: Any) -> list[Finding]:
    """Findings at the end, with an evaluation every 15 s."""
    found: list[Finding] = []
    for index, fact in enumerate(samples):
        now = NOW + start + index * STEP
        sample = structs.replace(fact, queue_seconds_total=now)
        found = watch.see(agent("n1", at=now, disk_io=(sample,), **parts), now=now)
    return found


BUSY, CALM = io(0.99, 32), io(0.3, 1)


@pytest.mark.parametrize(
    ("name", "looks", "fires"),
    [
        ("ten minutes", [BUSY] * 41, True),
        ("a little less", [BUSY] * 40, False),
        ("busy, but nothing waits", [io(1.0, 1)] * 60, False),
        ("90 % is not above 90 %", [io(0.90, 32)] * 60, False),
        ("the queue grows", [io(0.95, 4 + n) for n in range(60)], True),
        ("the queue is being worked off", [io(0.95, max(5, 200 - 4 * n)) for n in range(60)], False),
        ("a pause", [BUSY] * 30 + [CALM] * 10 + [BUSY] * 30, False),
        ("one calm look between two checkpoints is no pause", [BUSY] * 20 + [CALM] + [BUSY] * 30, True),
        ("over", [BUSY] * 60 + [CALM] * 10, False),
    ],
)
def test_curves(name: str, looks: list[DiskIoFact], fires: bool) -> None:
    expect = [("warning", "disk-io-saturated", False)] if fires else []
    assert brief(follow(Watch(RULE), looks)) == expect


def test_it_names_the_disk_and_the_pods() -> None:
    waits = GpuProcessFact(gpu_uuid="GPU-0", pid=7, kind="compute", state="D", container_id="id-slow")
    containers = (container("fast", pod="a-0"), container("slow", pod="z-0", user="bob"))
    found = follow(Watch(RULE), [BUSY] * 41, containers=containers, gpu_processes=(waits,))[0]
    assert found.labels == {"node": "n1", "mount": "/data"}
    assert found.since == NOW
    assert text(found).splitlines()[:5] == [
        "Disk sda of n1 has been busy for 10 min (99%) with 32 queued requests: everything on it is slow.",
        "32 requests were queued at the start, 32 are now.",
        "Mounted from it: /data, /home.",
        "team/z-0 of bob is waiting for it: 1 process in state D.",
        "team/a-0 of alice runs on this node.",
    ]
    assert "n1 的磁盘 sda 已连续繁忙 10 分钟" in text(found, "zh")
    assert "team/z-0（用户 bob）在等它：1 个进程处于 D 状态" in text(found, "zh")


def test_held_while_it_cannot_be_known() -> None:
    watch = Watch(RULE)
    follow(watch, [BUSY] * 41)
    later = NOW + 41 * STEP
    assert [finding.held for finding in watch.see(silent(), now=later)] == [True]
    assert [finding.held for finding in follow(watch, [io(None, None)], start=42 * STEP)] == [True]
    assert [finding.held for finding in follow(watch, [BUSY], start=43 * STEP)] == [False]
    assert follow(watch, [CALM] * 6, start=44 * STEP) == []


def test_what_is_calm_is_not_remembered() -> None:
    watch = Watch(RULE)
    follow(watch, [BUSY, *[CALM] * 6])
    assert watch.memory == {}


@pytest.mark.parametrize(("name", "looks", "fires"), [("goes on", [BUSY] * 41, True), ("is over", [CALM] * 10, False)])
def test_a_clock_that_is_set_back_neither_delays_it_nor_makes_it_last(
    name: str, looks: list[DiskIoFact], fires: bool
) -> None:
    watch = Watch(RULE)
    follow(watch, [BUSY] * 41, start=86400.0)
    assert bool(follow(watch, looks)) is fires, name


def test_a_sample_counts_once_however_often_it_is_evaluated() -> None:
    once, often = Watch(RULE), Watch(RULE)
    for index, queue in enumerate((200, 100, 50)):
        now, fact = NOW + index * STEP, io(0.95, queue, queue_seconds_total=float(index))
        given = agent("n1", at=now, disk_io=(fact,))
        once.see(given, now=now)
        for later in (0.0, 5.0, 10.0):
            often.see(given, now=now + later)
    assert often.memory == once.memory != {}


def test_time_alone_makes_and_ends_it() -> None:
    watch, busy, calm = Continuous(RULE), agent("n1", disk_io=(BUSY,)), agent("n1", disk_io=(CALM,))
    assert watch.see(busy) == []
    assert watch.next_at == NOW + 60  # a pause could end then
    assert watch.see(repeated(busy, NOW + 60), now=NOW + 60) == []
    assert watch.next_at == NOW + 600
    assert len(watch.see(repeated(busy, NOW + 600), now=NOW + 600)) == 1
    again = agent("n1", at=NOW + 615, disk_io=(structs.replace(BUSY, queue_seconds_total=9.0),))
    assert len(watch.see(again, now=NOW + 615)) == 1
    assert len(watch.see(repeated(calm, NOW + 630), now=NOW + 630)) == 1
    assert watch.next_at == NOW + 675
    assert watch.see(repeated(calm, NOW + 675), now=NOW + 675) == []


def test_after_hours_of_silence_it_begins_anew() -> None:
    watch = Watch(RULE)
    follow(watch, [BUSY] * 41)
    watch.see(silent(), now=NOW + 700)
    assert follow(watch, [BUSY] * 40, start=5 * 3600.0) == []
