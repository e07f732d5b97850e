"""The history of 1,000 nodes with 8 GPUs each: its file after a week, its CPU, and the charts read from it.

A cluster of 8,000 GPUs, 4,000 pods of 300 users in 20 queues, and 4 disks per node is recorded with a clock that the
benchmark moves, for one hour: from the samples of a cycle to the blocks of the hour. Every figure changes with every
sample, as noise; jobs come and go. *Size* is that of a week: the blocks by the minute, times 25, those by ten minutes,
times 169, each with the space of its row, and the rest of the file once. *CPU* is that of recording four samples a
minute, including what is written. *A chart* is an answer of `/v1/history` about a GPU or a node for one of the four
time spans, read from a store with a day by the minute; nodes are stored apart, so that a few of them are enough. *A
heat map* is an answer of `/v1/history/nodes` about another range of the 1,000 nodes, for one of the spans in turn, from
a week of their utilisation.
"""

from __future__ import annotations

import os
import random
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.report import Goal, Report
from monitor.facts import DiskFact, GpuFact, GpuInventory, HostFact, ShmFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Identity, NodeView, PodView, QueueView, UsageView
from monitor.facts.node import NodeSnapshot
from monitor.history.heatmap import NameRange
from monitor.history.model import HistorySubject
from monitor.history.reader import HistoryReader
from monitor.history.recorder import HistoryRecorder
from monitor.history.store import FILE, MAX_FINE_HOURS, MAX_HOURS, HistoryStore
from monitor.queries.history import HistoryQueries
from monitor.web.responses import json_response

NODES = int(os.environ.get("BENCH_HISTORY_NODES", "1000"))
GPUS_PER_NODE, PODS_PER_NODE, DISKS_PER_NODE = 8, 4, 4
USERS, QUEUES = 300, 20
HOURS = 1
SAMPLES_PER_MINUTE, MINUTE_SECONDS, HOUR_SECONDS = 4, 60, 3600
FULL_NODES = 1000
CHART_HOURS, CHART_NODES, CHARTS = 25, 20, 200
SPANS_SECONDS = (3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0)
GIB = 1 << 30
START = 1_794_873_600


def run() -> Report:
    """Measure recording, size and charts, and return the report."""
    with TemporaryDirectory() as name:
        recorded = measure_recording(Path(name) / "large")
        charts = measure_charts(Path(name) / "small")
        maps = measure_heat_maps(Path(name) / "week")
    goals = (
        Goal("history_mib", recorded["mib"], 300, "size of the history of 1,000 nodes x 8 GPUs after a week"),
        Goal("history_cpu_ratio", recorded["cpu"], 0.02, "share of a core that recording it takes"),
        Goal("chart_p95_ms", charts[int(len(charts) * 0.95) - 1], 100, "answer for a chart, 95th percentile"),
        Goal("heat_map_p95_ms", maps[int(len(maps) * 0.95) - 1], 100, "answer for the heat map of 1,000 nodes"),
    )
    keys = ("fine_mib", "coarse_mib", "rest_mib", "sample_ms", "hour_s")
    columns = (
        "nodes",
        "an hour by minute, MiB",
        "by 10 minutes, MiB",
        "rest, MiB",
        "a sample, ms",
        "end of an hour, s",
    )
    rows = [(str(NODES), *(f"{recorded[key]:.3g}" for key in keys))]
    how = (__doc__ or "").partition("\n\n")[2].strip()
    chart_rows = [
        (what, f"{statistics.median(took):.1f}", f"{took[-1]:.1f}")
        for what, took in (("chart", charts), ("heat map", maps))
    ]
    return Report(
        "history", "The history", how, goals,
        [("Recording", columns, rows), ("Charts", ("answer", "median ms", "slowest ms"), chart_rows)],
    )  # fmt: skip


class Clock:
    """Moved by the benchmark."""

    def __init__(self) -> None:
        self.at = float(START)

    def time(self) -> float:
        return self.at


class Cluster:
    """Views and agents whose figures all change."""

    def __init__(self, nodes: int) -> None:
        self._chance = random.Random(7)
        self._names = [f"gpu-{node:04d}" for node in range(nodes)]
        self._levels = [self._chance.random() for _ in range(nodes * GPUS_PER_NODE)]
        self._noise = [self._chance.gauss(0, 0.03) for _ in range(9973)]
        self._minutes = 0

    def view(self, at: float) -> ClusterView:
        self._minutes += 1
        if self._minutes % (30 * SAMPLES_PER_MINUTE) == 0:  # other jobs
            for index in range(0, len(self._levels), 7):
                self._levels[index] = self._chance.random()
        offset = self._chance.randrange(len(self._noise))
        loads = [
            min(1.0, max(0.0, level + self._noise[(offset + index) % len(self._noise)]))
            for index, level in enumerate(self._levels)
        ]
        gpus = tuple(
            GpuView(
                node=self._names[index // GPUS_PER_NODE], state=GpuState.BUSY, index=index % GPUS_PER_NODE,
                utilization_ratio=load, memory_used_bytes=int(80 * GIB * level), memory_total_bytes=80 * GIB,
            )
            for index, (load, level) in enumerate(zip(loads, self._levels, strict=True))
        )  # fmt: skip
        waiting = self._chance.randrange(20)
        usage = {f"user-{n}": UsageView(gpus=26, gpu_utilization_ratio=loads[n % len(loads)]) for n in range(USERS)}
        return ClusterView(
            at=at, gpus=gpus, nodes=tuple(NodeView(name=name, free=0) for name in self._names), users=usage,
            pods=tuple(self._pods(loads)),
            queues=tuple(QueueView(name=f"vc-{n}", used=400, waiting=waiting + n) for n in range(QUEUES)),
        )  # fmt: skip

    def _pods(self, loads: list[float]) -> Iterator[PodView]:
        for node, name in enumerate(self._names):
            for number in range(PODS_PER_NODE):
                own = f"train-{node:04d}-{number}-{self._minutes // (240 * SAMPLES_PER_MINUTE)}"
                yield PodView(
                    uid=own, name=own, namespace=f"team-{node % QUEUES}", phase="Running", node=name, requested_gpus=2,
                    identity=Identity(user=f"user-{node % USERS}", job=f"job-{node // 4}", queue=f"vc-{node % QUEUES}"),
                    usage=UsageView(gpu_utilization_ratio=loads[node * GPUS_PER_NODE + 2 * number]),
                )  # fmt: skip

    def agents(self, at: float) -> tuple[AgentFact, ...]:
        return tuple(
            AgentFact(target=name, node=name, snapshot=self._snapshot(node, name, at))
            for node, name in enumerate(self._names)
        )

    def _snapshot(self, node: int, name: str, at: float) -> NodeSnapshot:
        seconds, chance = at - START, self._chance
        noise = self._noise[(node + int(at)) % len(self._noise)]
        gpus = (
            GpuFact(index=n, power_watts=400 + 300 * noise + n, temperature_celsius=60.0 + n + chance.randrange(3))
            for n in range(GPUS_PER_NODE)
        )
        host = HostFact(
            cpus=128, memory_total_bytes=1024 * GIB, memory_available_bytes=int(chance.uniform(500, 510) * GIB),
            cpu_seconds_total={"user": seconds * 40 + chance.random() * 99, "idle": seconds * 88},
        )  # fmt: skip
        disks = (
            DiskFact(
                mount=f"/disk{n}", device="d", fstype="xfs", used_bytes=int(seconds) + node * n, available_bytes=10**7
            )
            for n in range(DISKS_PER_NODE)
        )
        return NodeSnapshot(
            node=name, at=at, agent_version="1", host=host, gpu=GpuInventory(gpus=tuple(gpus)), disk=tuple(disks),
            shm=(ShmFact(size_bytes=GIB, used_bytes=chance.randrange(GIB), device=1),),
        )  # fmt: skip


def measure_recording(folder: Path) -> dict[str, float]:
    """Record some hours; return the size of a week and the share of a core."""
    clock, cluster = Clock(), Cluster(NODES)
    store = HistoryStore(str(folder / FILE))
    recorder = HistoryRecorder(store, clock.time, clock.time)
    used, samples, hour = 0.0, [], 0.0
    for sample in range(HOURS * 60 * SAMPLES_PER_MINUTE + 1):
        view, agents = cluster.view(clock.at), cluster.agents(clock.at)
        began = time.process_time()
        recorder.record(view, agents)
        took = time.process_time() - began
        used += took
        if sample and clock.at % HOUR_SECONDS == 0:
            hour = max(hour, took)
        samples.append(1000 * took)
        clock.at += MINUTE_SECONDS / SAMPLES_PER_MINUTE
    with closing(sqlite3.connect(folder / FILE)) as file:
        query = "SELECT SUM(LENGTH(fine)), SUM(LENGTH(coarse)), COUNT(*) FROM blocks"
        fine, coarse, rows = (value / HOURS for value in file.execute(query).fetchone())
    recorder.close()
    scale, mib = FULL_NODES / NODES, 2**20
    row_bytes = rows * 100  # keys, indexes and page headers
    rest = max(0.0, os.path.getsize(folder / FILE) - HOURS * (fine + coarse))
    week = scale * ((fine + row_bytes) * MAX_FINE_HOURS + (coarse + row_bytes) * MAX_HOURS + rest)
    return {
        "mib": week / mib, "cpu": scale * used / (HOURS * HOUR_SECONDS), "fine_mib": fine / mib,
        "coarse_mib": coarse / mib, "rest_mib": rest / mib, "sample_ms": statistics.median(samples), "hour_s": hour,
    }  # fmt: skip


def measure_charts(folder: Path) -> list[float]:
    """Milliseconds of answers, sorted: nodes are independent of each other, so a few of them are recorded for a day."""
    clock, cluster = Clock(), Cluster(CHART_NODES)
    recorder = HistoryRecorder(HistoryStore(str(folder / FILE)), clock.time, clock.time)
    for _ in range(CHART_HOURS * 60):
        recorder.record(cluster.view(clock.at), cluster.agents(clock.at))
        clock.at += MINUTE_SECONDS
    queries = HistoryQueries(HistoryReader(recorder, now=clock.time))
    took, chance = [], random.Random(5)
    for number in range(CHARTS):
        node = f"gpu-{chance.randrange(CHART_NODES):04d}"
        subject, name = (HistorySubject.GPU, f"{node}/3") if number % 2 else (HistorySubject.NODE, node)
        began = time.perf_counter()
        json_response(queries.answer(subject, name, SPANS_SECONDS[number // 2 % 4], None, "en"))
        took.append(1000 * (time.perf_counter() - began))
    recorder.close()
    return sorted(took)


def measure_heat_maps(folder: Path) -> list[float]:
    """Milliseconds of answers, sorted: an hour of the nodes is recorded, and repeated for the week before it."""
    clock, nodes = Clock(), [f"gpu-{node:04d}" for node in range(NODES)]
    recorder = HistoryRecorder(HistoryStore(str(folder / FILE)), clock.time, clock.time)
    chance = random.Random(5)
    for _ in range(90):  # an hour, and half of another one
        gpus = tuple(
            GpuView(node=name, state=GpuState.BUSY, index=0, utilization_ratio=chance.random()) for name in nodes
        )
        names = tuple(NodeView(name=name, free=0) for name in nodes)
        recorder.record(ClusterView(at=clock.at, gpus=gpus, nodes=names), ())
        clock.at += MINUTE_SECONDS
    recorder.save()
    repeat_hour(folder / FILE, START)
    queries, took = HistoryQueries(HistoryReader(recorder, now=clock.time)), []
    for number in range(CHARTS):
        nodes_from = NameRange(first=nodes[number % (NODES // 4)])  # no answer is the one of this minute
        began = time.perf_counter()
        json_response(queries.heat_map(SPANS_SECONDS[number % 4], None, nodes_from))
        took.append(1000 * (time.perf_counter() - began))
    recorder.close()
    return sorted(took)


def repeat_hour(path: Path, hour: int) -> None:
    """Copy the blocks of an hour to those before it, with as much detail as is kept."""
    with closing(sqlite3.connect(path)) as file, file:
        for number in range(1, MAX_HOURS - 1):
            fine = number < MAX_FINE_HOURS - 1
            at = hour - number * HOUR_SECONDS
            file.execute("INSERT INTO hours VALUES (?, ?)", (at, fine))
            copy = f"INSERT INTO blocks SELECT series, ?, layout, coarse, {'fine' if fine else 'NULL'} FROM blocks"
            file.execute(f"{copy} WHERE hour = ?", (at, hour))
