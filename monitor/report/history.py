"""History of the last day in memory, for charts: one value per minute for six hours, before that one per five minutes.

Times are monotonic until they are read, so setting the wall clock shifts the whole chart instead of leaving gaps in it.
An unknown value is a gap, never 0.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState

MINUTE_SECONDS = 60.0
FINE_POINTS = 6 * 60
STEP_MINUTES = 5
COARSE_POINTS = 24 * 60 // STEP_MINUTES
MAX_BYTES = 32 << 20
ABSENT_MINUTES = 60  # after this time without values, a series may be dropped for another
CLUSTER = "cluster"  # name of the only series of HistorySubject.CLUSTER
_OVERHEAD_BYTES = 450  # of a series besides its values
_UNKNOWN = {"B": 0xFF, "H": 0xFFFF}

Point = tuple[float, float | None]


class HistorySubject(StrEnum):
    """What a series is about. GPUs are named `node/index`."""

    CLUSTER = "cluster"
    NODE = "node"
    GPU = "gpu"
    USER = "user"
    QUEUE = "queue"


class HistoryMetric(StrEnum):
    """The measured value. `disk` is the used share of the fullest local disk."""

    UTILIZATION = "utilization"
    GPUS = "gpus"  # held by live pods
    FREE = "free"
    DISK = "disk"


# Array type and scale factor.
_ENCODINGS = {
    HistoryMetric.UTILIZATION: ("B", 200.0),
    HistoryMetric.DISK: ("B", 200.0),
    HistoryMetric.GPUS: ("H", 1.0),
    HistoryMetric.FREE: ("H", 1.0),
}

Sample = tuple[HistorySubject, HistoryMetric, Iterable[tuple[str, float | None]]]  # values by name


class HistorySeries:
    """One value over time."""

    __slots__ = ("_coarse", "_count", "_fine", "_scale", "_sum", "_unknown", "minute")

    def __init__(self, metric: HistoryMetric, minute: int) -> None:
        code, self._scale = _ENCODINGS[metric]
        self._unknown = _UNKNOWN[code]
        self._fine = array(code, [self._unknown]) * FINE_POINTS
        self._coarse = array(code, [self._unknown]) * COARSE_POINTS
        self.minute = minute
        self._sum, self._count = 0.0, 0

    def add(self, minute: int, value: float | None) -> None:
        """Add a value; minutes never decrease. Several values within a minute are averaged."""
        if minute != self.minute:
            self._advance(minute)
        if value is not None:
            self._sum += value
            self._count += 1
            encoded = int(self._sum / self._count * self._scale + 0.5)
            self._fine[minute % FINE_POINTS] = encoded if 0 <= encoded < self._unknown else self._unknown - 1

    def _advance(self, minute: int) -> None:
        """Move to a later minute; the minutes between are unknown."""
        step, until = self.minute // STEP_MINUTES, minute // STEP_MINUTES
        if step != until:
            self._coarse[step % COARSE_POINTS] = self._mean(step)
            for skipped in range(max(step + 1, until - COARSE_POINTS), until):
                self._coarse[skipped % COARSE_POINTS] = self._unknown
        for skipped in range(max(self.minute + 1, minute - FINE_POINTS + 1), minute + 1):
            self._fine[skipped % FINE_POINTS] = self._unknown
        self.minute, self._sum, self._count = minute, 0.0, 0

    def _mean(self, step: int) -> int:
        first = step * STEP_MINUTES
        values = [self._fine[minute % FINE_POINTS] for minute in range(first, first + STEP_MINUTES)]
        known = [value for value in values[: self.minute - first + 1] if value != self._unknown]
        return round(sum(known) / len(known)) if known else self._unknown

    def points(self) -> Iterator[tuple[int, float | None]]:
        """Minutes and values, oldest first."""
        first = max(0, self.minute - FINE_POINTS + 1)
        step = first // STEP_MINUTES  # the first step that the fine values cover
        for old in range(max(0, self.minute // STEP_MINUTES - COARSE_POINTS + 1), step):
            yield old * STEP_MINUTES, self._decoded(self._coarse[old % COARSE_POINTS])
        for minute in range(first, self.minute + 1):
            yield minute, self._decoded(self._fine[minute % FINE_POINTS])

    def _decoded(self, encoded: int) -> float | None:
        return None if encoded == self._unknown else encoded / self._scale


class MetricHistory:
    """All series, within a memory limit. Not thread-safe."""

    def __init__(self, limit: int = MAX_BYTES) -> None:
        self._limit = limit
        self._series: dict[tuple[HistorySubject, HistoryMetric], dict[str, HistorySeries]] = {}
        self._size = 0
        self._swept = -1
        self._offset = 0.0  # wall clock minus monotonic clock, at the last sample

    def add(self, view: ClusterView, agents: Iterable[AgentFact], wall: float, monotonic: float) -> None:
        """Add the current values, the most useful first: there may not be memory for all GPUs."""
        self._offset = wall - monotonic
        minute = int(monotonic // MINUTE_SECONDS)
        for subject, metric, values in samples(view, agents):
            by_name = self._series.setdefault((subject, metric), {})
            for name, value in values:
                series = by_name.get(name) or self._create(by_name, name, metric, minute)
                if series is not None:
                    series.add(minute, value)

    def series(
        self, subject: HistorySubject, name: str = CLUSTER, metric: HistoryMetric = HistoryMetric.UTILIZATION
    ) -> tuple[Point, ...]:
        """Times and values, oldest first; None is a gap. Empty if there is no such series."""
        series = self._series.get((subject, metric), {}).get(name)
        points = [] if series is None else list(series.points())
        first = next((index for index, (_, value) in enumerate(points) if value is not None), len(points))
        return tuple((minute * MINUTE_SECONDS + self._offset, value) for minute, value in points[first:])

    def _create(
        self, by_name: dict[str, HistorySeries], name: str, metric: HistoryMetric, minute: int
    ) -> HistorySeries | None:
        """A new series; None if there is no memory for it."""
        size = _size(metric)
        if self._size + size > self._limit:
            self._sweep(minute)
            if self._size + size > self._limit:
                return None
        self._size += size
        series = by_name[name] = HistorySeries(metric, minute)
        return series

    def _sweep(self, minute: int) -> None:
        """Drop absent series, at most once a minute."""
        if self._swept == minute:
            return
        self._swept = minute
        for (_, metric), by_name in self._series.items():
            for name in [name for name, series in by_name.items() if minute - series.minute >= ABSENT_MINUTES]:
                del by_name[name]
                self._size -= _size(metric)


def _size(metric: HistoryMetric) -> int:
    """Bytes of a series."""
    return (FINE_POINTS + COARSE_POINTS) * array(_ENCODINGS[metric][0]).itemsize + _OVERHEAD_BYTES


def samples(view: ClusterView, agents: Iterable[AgentFact]) -> Iterator[Sample]:
    """Current values of all series."""
    disks = dict(_disks(agents))
    loads: defaultdict[str, list[float]] = defaultdict(list)  # by node
    for gpu in view.gpus:
        if gpu.utilization_ratio is not None:
            loads[gpu.node].append(gpu.utilization_ratio)
    held = sum(gpu.state is GpuState.BUSY or gpu.state is GpuState.IDLE_HELD for gpu in view.gpus)
    all_loads = [load for node_loads in loads.values() for load in node_loads]
    yield HistorySubject.CLUSTER, HistoryMetric.UTILIZATION, [(CLUSTER, _mean(all_loads))]
    yield HistorySubject.CLUSTER, HistoryMetric.GPUS, [(CLUSTER, held)]
    yield HistorySubject.CLUSTER, HistoryMetric.FREE, [(CLUSTER, sum(capacity.free for capacity in view.free))]
    yield HistorySubject.CLUSTER, HistoryMetric.DISK, [(CLUSTER, max(disks.values(), default=None))]
    yield (
        HistorySubject.NODE,
        HistoryMetric.UTILIZATION,
        [(node.name, _mean(loads.get(node.name, []))) for node in view.nodes],
    )
    yield HistorySubject.NODE, HistoryMetric.FREE, [(node.name, node.free) for node in view.nodes]
    yield HistorySubject.NODE, HistoryMetric.DISK, [(node.name, disks.get(node.name)) for node in view.nodes]
    yield HistorySubject.QUEUE, HistoryMetric.GPUS, [(queue.name, queue.used) for queue in view.queues]
    yield (
        HistorySubject.QUEUE,
        HistoryMetric.FREE,
        [(queue.name, queue.free) for queue in view.queues if queue.free is not None],
    )
    yield HistorySubject.USER, HistoryMetric.GPUS, [(user, usage.gpus) for user, usage in view.users.items()]
    yield from _owner_utilization(view)
    yield (
        HistorySubject.GPU,
        HistoryMetric.UTILIZATION,
        [(f"{gpu.node}/{gpu.index}", gpu.utilization_ratio) for gpu in view.gpus],
    )


def _owner_utilization(view: ClusterView) -> Iterator[Sample]:
    """Mean utilization of the GPUs of each user and each queue."""
    users: defaultdict[str, list[float]] = defaultdict(list)
    queues: defaultdict[str, list[float]] = defaultdict(list)
    for gpu in view.gpus:
        if gpu.utilization_ratio is None:
            continue
        for holder in gpu.holders:
            if holder.live and holder.user is not None:
                users[holder.user].append(gpu.utilization_ratio)
            if holder.live and holder.queue is not None:
                queues[holder.queue].append(gpu.utilization_ratio)
    yield HistorySubject.USER, HistoryMetric.UTILIZATION, [(user, _mean(loads)) for user, loads in users.items()]
    yield HistorySubject.QUEUE, HistoryMetric.UTILIZATION, [(queue, _mean(loads)) for queue, loads in queues.items()]


def _disks(agents: Iterable[AgentFact]) -> Iterator[tuple[str, float]]:
    """Used share of the fullest disk of each node whose agent answers."""
    for agent in agents:
        snapshot = agent.snapshot if agent.silent_since is None else None
        shares = [
            disk.used_bytes / (disk.used_bytes + disk.available_bytes)
            for disk in (snapshot.disk or () if snapshot is not None else ())
            if disk.used_bytes and disk.available_bytes is not None and "nas" not in disk.roles
        ]
        if agent.node is not None and shares:
            yield agent.node, max(shares)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
