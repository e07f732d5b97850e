"""Histories for charts: values, gaps and bounded memory."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest

from monitor.facts import DiskFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, FreeView, GpuState, GpuView, NodeView, QueueView, UsageView
from monitor.facts.node import NodeSnapshot
from monitor.report.history import (
    ABSENT_MINUTES,
    COARSE_POINTS,
    FINE_POINTS,
    MINUTE_SECONDS,
    STEP_MINUTES,
    HistoryMetric,
    HistorySeries,
    HistorySubject,
    MetricHistory,
)
from tests.report.builders import HOUR0, gpu, holder, view

BOOT = 600_000.0  # monotonic


class Machine:
    """A history and its two clocks."""

    def __init__(self, **limits: int) -> None:
        self.history = MetricHistory(**limits)
        self.wall, self.monotonic = HOUR0, BOOT

    def see(self, *gpus: GpuView, after: float = 0.0, **more: Any) -> None:
        self.pass_time(after)
        self.history.add(view(*gpus, **more), (), self.wall, self.monotonic)

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def values(
        self,
        subject: HistorySubject = HistorySubject.GPU,
        name: str = "n1/0",
        metric: HistoryMetric = HistoryMetric.UTILIZATION,
    ) -> list[float | None]:
        return [value for _, value in self.history.series(subject, name, metric)]


def busy(load: float | None) -> GpuView:
    return gpu(GpuState.BUSY, holder(), load=load)


def test_a_value_a_minute_and_a_gap_is_a_gap() -> None:
    machine = Machine()
    machine.see(busy(0.2))
    machine.see(busy(0.4), after=15)
    machine.see(busy(0.5), after=MINUTE_SECONDS)
    machine.see(busy(None), after=MINUTE_SECONDS)
    machine.see(after=MINUTE_SECONDS)
    machine.see(busy(1.0), after=2 * MINUTE_SECONDS)
    assert machine.values() == pytest.approx([0.3, 0.5, None, None, None, 1.0])
    times = [at for at, _ in machine.history.series(HistorySubject.GPU, "n1/0")]
    assert times == [HOUR0 + MINUTE_SECONDS * number for number in range(6)]


def test_a_clock_that_is_set_moves_the_chart_as_a_whole() -> None:
    machine = Machine()
    machine.see(busy(0.1))
    machine.wall -= 86400.0
    machine.see(busy(0.2), after=MINUTE_SECONDS)
    times = [at for at, _ in machine.history.series(HistorySubject.GPU, "n1/0")]
    assert machine.values() == pytest.approx([0.1, 0.2])
    assert times == [HOUR0 - 86400, HOUR0 - 86400 + MINUTE_SECONDS]


def test_after_six_hours_five_minutes_are_one_and_after_a_day_nothing_is_left() -> None:
    series, expect = HistorySeries(HistoryMetric.GPUS, 0), {}
    day = COARSE_POINTS * STEP_MINUTES
    for minute in range(day + 3 * FINE_POINTS):
        series.add(minute, minute % 7)
        expect[minute] = minute % 7
    points = dict(series.points())
    last = day + 3 * FINE_POINTS - 1
    fine = {minute: value for minute, value in points.items() if minute > last - FINE_POINTS}
    assert fine == {minute: expect[minute] for minute in range(last - FINE_POINTS + 1, last + 1)}
    coarse = {minute: value for minute, value in points.items() if minute <= last - FINE_POINTS}
    assert len(coarse) == COARSE_POINTS - FINE_POINTS // STEP_MINUTES
    assert min(coarse) == last // STEP_MINUTES * STEP_MINUTES - (COARSE_POINTS - 1) * STEP_MINUTES
    for minute, value in coarse.items():
        mean = sum(expect[minute + more] for more in range(STEP_MINUTES)) / STEP_MINUTES
        assert value == pytest.approx(mean, abs=0.51)  # stored as whole GPUs


def test_what_was_absent_for_long_is_not_known_for_as_long() -> None:
    for absent in (
        1,
        STEP_MINUTES,
        17,
        FINE_POINTS - 1,
        FINE_POINTS,
        FINE_POINTS + 3,
        STEP_MINUTES * COARSE_POINTS - 1,
        STEP_MINUTES * COARSE_POINTS + 1,
        50_000,
    ):
        series = HistorySeries(HistoryMetric.UTILIZATION, 1000)
        for minute in range(1000, 1000 + 2 * STEP_MINUTES):
            series.add(minute, 0.5)
        last = 1000 + 2 * STEP_MINUTES - 1
        series.add(last + absent, 1.0)
        known = {minute: value for minute, value in series.points() if value is not None}
        assert known.pop(last + absent) == 1.0
        assert set(known.values()) <= {0.5}
        assert all(last + absent - STEP_MINUTES * COARSE_POINTS < minute <= last for minute in known)
        assert bool(known) == (absent < STEP_MINUTES * (COARSE_POINTS - 1))


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_plain_lists_would_say(seed: int) -> None:
    chance, minute = random.Random(seed), 3
    series, known_values = HistorySeries(HistoryMetric.GPUS, minute), dict[int, int]()
    for _ in range(6000):
        value = chance.choice([None, 3, 20, 40])
        series.add(minute, value)
        if value is not None:
            known_values[minute] = value
        minute += chance.choices([1, 2, 9, 400, 1600, 11_000], [9000, 300, 50, 3, 2, 1])[0]
        if chance.random() < 0.01:
            assert {at: value for at, value in series.points() if value is not None} == expected(
                known_values, series.minute
            )


def expected(known_values: dict[int, int], last: int) -> dict[int, int]:
    """Expected points: single minutes of the last hours, and five-minute means before."""
    first = max(0, last - FINE_POINTS + 1)
    found = {at: value for at, value in known_values.items() if at >= first}
    for step in range(max(0, last // STEP_MINUTES - COARSE_POINTS + 1), first // STEP_MINUTES):
        within = [
            known_values[at]
            for at in range(step * STEP_MINUTES, step * STEP_MINUTES + STEP_MINUTES)
            if at in known_values
        ]
        if within:
            found[step * STEP_MINUTES] = round(sum(within) / len(within))
    return found


CLUSTER = ClusterView(
    at=HOUR0,
    gpus=(
        gpu(GpuState.BUSY, holder(), load=0.5),
        gpu(GpuState.IDLE_HELD, holder("li", "cv"), index=1, load=0.0),
        gpu(GpuState.ZOMBIE, holder("li", "cv", live=False), index=2, load=0.7),
        gpu(GpuState.UNKNOWN, node="n2"),
    ),
    nodes=(NodeView(name="n1", free=5), NodeView(name="n2", free=None)),
    free=(FreeView(model="A100", total=16, free=5, largest_on_one_node=5),),
    queues=(QueueView(name="nlp", used=1, waiting=0, free=7), QueueView(name="cv", used=1, waiting=0)),
    users={"zhang": UsageView(gpus=1), "li": UsageView(gpus=1)},
)
KEPT: list[tuple[HistorySubject, str, HistoryMetric, float | None]] = [
    (HistorySubject.CLUSTER, "cluster", HistoryMetric.UTILIZATION, 0.4),
    (HistorySubject.CLUSTER, "cluster", HistoryMetric.GPUS, 2),
    (HistorySubject.CLUSTER, "cluster", HistoryMetric.FREE, 5),
    (HistorySubject.CLUSTER, "cluster", HistoryMetric.DISK, 0.9),
    (HistorySubject.NODE, "n1", HistoryMetric.UTILIZATION, 0.4),
    (HistorySubject.NODE, "n1", HistoryMetric.FREE, 5),
    (HistorySubject.NODE, "n1", HistoryMetric.DISK, 0.9),
    (HistorySubject.NODE, "n2", HistoryMetric.UTILIZATION, None),
    (HistorySubject.NODE, "n2", HistoryMetric.FREE, None),
    (HistorySubject.NODE, "n2", HistoryMetric.DISK, None),
    (HistorySubject.USER, "zhang", HistoryMetric.UTILIZATION, 0.5),
    (HistorySubject.USER, "zhang", HistoryMetric.GPUS, 1),
    (HistorySubject.USER, "li", HistoryMetric.UTILIZATION, 0.0),
    (HistorySubject.QUEUE, "nlp", HistoryMetric.FREE, 7),
    (HistorySubject.QUEUE, "nlp", HistoryMetric.GPUS, 1),
    (HistorySubject.QUEUE, "cv", HistoryMetric.UTILIZATION, 0.0),
    (HistorySubject.QUEUE, "cv", HistoryMetric.FREE, None),
    (HistorySubject.GPU, "n1/2", HistoryMetric.UTILIZATION, 0.7),
    (HistorySubject.GPU, "n2/0", HistoryMetric.UTILIZATION, None),
    (HistorySubject.USER, "nobody", HistoryMetric.GPUS, None),
]


def disk(mount: str, used: int, free: int, *roles: str) -> DiskFact:
    return DiskFact(mount=mount, device="d", fstype="ext4", roles=roles, used_bytes=used, available_bytes=free)


@pytest.mark.parametrize(("subject", "name", "metric", "expect"), KEPT)
def test_what_is_kept(subject: HistorySubject, name: str, metric: HistoryMetric, expect: float | None) -> None:
    disks = (disk("/", 10, 90, "system"), disk("/data", 90, 10, "data"), disk("/share", 99, 1, "nas"))
    answering = AgentFact(
        target="t", node="n1", snapshot=NodeSnapshot(node="n1", at=1.0, agent_version="0", disk=disks)
    )
    full = NodeSnapshot(node="n2", at=1.0, agent_version="0", disk=(disk("/", 98, 2, "system"),))
    silent = AgentFact(target="s", node="n2", snapshot=full, silent_since=2.0)
    history = MetricHistory()
    history.add(CLUSTER, [answering, silent], HOUR0, BOOT)
    points = history.series(subject, name, metric)
    assert [value for _, value in points] == ([] if expect is None else [pytest.approx(expect, abs=0.003)])


def test_without_room_the_cluster_comes_first_and_what_is_gone_goes() -> None:
    machine = Machine(limit=11_000)
    many = [gpu(GpuState.BUSY, index=number, load=0.5) for number in range(100)]
    machine.see(*many)
    assert machine.values(HistorySubject.CLUSTER, "cluster") == [0.5]
    kept = [number for number in range(100) if machine.values(name=f"n1/{number}")]
    assert 0 < len(kept) < 8
    machine.see(*many[50:], after=ABSENT_MINUTES * MINUTE_SECONDS)
    assert [number for number in range(100) if machine.values(name=f"n1/{number}")] == [
        50 + n for n in range(len(kept))
    ]


def test_a_thousand_nodes_take_less_than_16_mib() -> None:
    chance = random.Random(3)
    gpus = tuple(
        gpu(GpuState.BUSY, holder(f"u{chance.randrange(300)}", f"q{index}"), node=f"n{node}", index=index, load=0.5)
        for node in range(1000)
        for index in range(8)
    )
    users = {f"u{number}": UsageView(gpus=1) for number in range(300)}
    whole = view(*gpus, nodes=tuple(NodeView(name=f"n{node}", free=0) for node in range(1000)), users=users)
    history = MetricHistory()
    tracemalloc.start()
    try:
        history.add(whole, (), HOUR0, BOOT)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 16 << 20
    assert history.series(HistorySubject.GPU, "n999/7")
