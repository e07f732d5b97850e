"""The last days in memory, for small charts: a value a minute for a day, and one for five minutes before that. Pure.

Times are those of the monotonic clock until somebody asks: a clock that is set moves the whole chart, and tears nothing
out of it. A value that is not known is a gap, never 0.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, GpuState

MINUTE_SECONDS = 60.0
FINE_POINTS = 24 * 60  # minutes
STEP_MINUTES = 5  # minutes
COARSE_POINTS = 7 * 24 * 60 // STEP_MINUTES
MAX_BYTES = 52 << 20
ABSENT_MINUTES = 60  # minutes after which a series that nobody adds to may make room for others
CLUSTER = "cluster"  # the name of the one cluster there is
_OVERHEAD_BYTES = 450  # bytes of a series besides its values
_UNKNOWN = {"B": 0xFF, "H": 0xFFFF}

Point = tuple[float, float | None]


class HistorySubject(StrEnum):
    """What a series is about. Cards are named `node/index`."""

    CLUSTER = "cluster"
    NODE = "node"
    CARD = "card"
    USER = "user"
    QUEUE = "queue"


class HistoryMetric(StrEnum):
    """What is kept of it. `disk` is how full the fullest disk is, without those of other machines."""

    UTILIZATION = "utilization"
    GPUS = "gpus"  # that live pods have
    FREE = "free"
    DISK = "disk"


# How a value is kept: in which array, and how many make 1.
_ENCODINGS = {
    HistoryMetric.UTILIZATION: ("B", 200.0),
    HistoryMetric.DISK: ("B", 200.0),
    HistoryMetric.GPUS: ("H", 1.0),
    HistoryMetric.FREE: ("H", 1.0),
}

Sample = tuple[HistorySubject, HistoryMetric, Iterable[tuple[str, float | None]]]  # by name


class HistorySeries:
    """One value over time."""

    __slots__ = ("_coarse", "_count", "_fine", "_scale", "_sum", "_unknown", "minute")

    def __init__(self, what: HistoryMetric, minute: int) -> None:
        code, self._scale = _ENCODINGS[what]
        self._unknown = _UNKNOWN[code]
        self._fine = array(code, [self._unknown]) * FINE_POINTS
        self._coarse = array(code, [self._unknown]) * COARSE_POINTS
        self.minute = minute
        self._sum, self._count = 0.0, 0

    def add(self, minute: int, value: float | None) -> None:
        """Add a value of a minute that is not before the last one. Several values of a minute become their mean."""
        if minute != self.minute:
            self._advance(minute)
        if value is not None:
            self._sum += value
            self._count += 1
            kept = int(self._sum / self._count * self._scale + 0.5)
            self._fine[minute % FINE_POINTS] = kept if 0 <= kept < self._unknown else self._unknown - 1

    def _advance(self, minute: int) -> None:
        """Go on to a later minute: nothing is known of those in between."""
        step, until = self.minute // STEP_MINUTES, minute // STEP_MINUTES
        if step != until:
            self._coarse[step % COARSE_POINTS] = self._mean(step)
            for skipped in range(max(step + 1, until - COARSE_POINTS), until):
                self._coarse[skipped % COARSE_POINTS] = self._unknown
        for skipped in range(max(self.minute + 1, minute - FINE_POINTS + 1), minute + 1):
            self._fine[skipped % FINE_POINTS] = self._unknown
        self.minute, self._sum, self._count = minute, 0.0, 0

    def _mean(self, step: int) -> int:
        values = [
            self._fine[minute % FINE_POINTS]
            for minute in range(step * STEP_MINUTES, step * STEP_MINUTES + STEP_MINUTES)
        ]
        known = [value for value in values[: self.minute - step * STEP_MINUTES + 1] if value != self._unknown]
        return round(sum(known) / len(known)) if known else self._unknown

    def points(self) -> Iterator[tuple[int, float | None]]:
        """Yield minutes and values, the oldest first."""
        first = max(0, self.minute - FINE_POINTS + 1)
        step = first // STEP_MINUTES  # the first step of which the fine values say something
        for old in range(max(0, self.minute // STEP_MINUTES - COARSE_POINTS + 1), step):
            yield old * STEP_MINUTES, self._value(self._coarse[old % COARSE_POINTS])
        for minute in range(first, self.minute + 1):
            yield minute, self._value(self._fine[minute % FINE_POINTS])

    def _value(self, kept: int) -> float | None:
        return None if kept == self._unknown else kept / self._scale


class MetricHistory:
    """All series. Used from one thread at a time."""

    def __init__(self, limit: int = MAX_BYTES) -> None:
        self._limit = limit
        self._series: dict[tuple[HistorySubject, HistoryMetric], dict[str, HistorySeries]] = {}
        self._size = 0
        self._swept = -1
        self._offset = 0.0  # between the two clocks, as of the last look

    def take(self, view: ClusterView, agents: Iterable[AgentFact], wall: float, monotonic: float) -> None:
        """Add what is seen now. What is most worth having comes first: there may not be room for all cards."""
        self._offset = wall - monotonic
        minute = int(monotonic // MINUTE_SECONDS)
        for kind, what, values in samples(view, agents):
            known = self._series.setdefault((kind, what), {})
            for name, value in values:
                series = known.get(name) or self._begin(known, name, what, minute)
                if series is not None:
                    series.add(minute, value)

    def series(
        self, kind: HistorySubject, name: str = CLUSTER, what: HistoryMetric = HistoryMetric.UTILIZATION
    ) -> tuple[Point, ...]:
        """Return times and values, the oldest first; None is a gap. Empty if nothing is known of such a thing."""
        found = self._series.get((kind, what), {}).get(name)
        points = [] if found is None else list(found.points())
        begin = next((place for place, (_, value) in enumerate(points) if value is not None), len(points))
        return tuple((minute * MINUTE_SECONDS + self._offset, value) for minute, value in points[begin:])

    def _begin(
        self, known: dict[str, HistorySeries], name: str, what: HistoryMetric, minute: int
    ) -> HistorySeries | None:
        """Return a new series among those of its kind; None if there is no room for it."""
        size = _size(what)
        if self._size + size > self._limit:
            self._sweep(minute)
            if self._size + size > self._limit:
                return None
        self._size += size
        series = known[name] = HistorySeries(what, minute)
        return series

    def _sweep(self, minute: int) -> None:
        """Drop what nobody has added to for a while; once a minute at most, however many there is no room for."""
        if self._swept == minute:
            return
        self._swept = minute
        for (_, what), known in self._series.items():
            for name in [name for name, each in known.items() if minute - each.minute >= ABSENT_MINUTES]:
                del known[name]
                self._size -= _size(what)


def _size(what: HistoryMetric) -> int:
    """Return how many bytes a series takes."""
    return (FINE_POINTS + COARSE_POINTS) * array(_ENCODINGS[what][0]).itemsize + _OVERHEAD_BYTES


def samples(view: ClusterView, agents: Iterable[AgentFact]) -> Iterator[Sample]:
    """Given what is seen now, yield every value that is kept of it."""
    disks = dict(_disks(agents))
    loads: defaultdict[str, list[float]] = defaultdict(list)  # by node
    for gpu in view.gpus:
        if gpu.utilization_ratio is not None:
            loads[gpu.node].append(gpu.utilization_ratio)
    held = sum(gpu.state is GpuState.BUSY or gpu.state is GpuState.IDLE_HELD for gpu in view.gpus)
    everywhere = [load for each in loads.values() for load in each]
    yield HistorySubject.CLUSTER, HistoryMetric.UTILIZATION, [(CLUSTER, _mean(everywhere))]
    yield HistorySubject.CLUSTER, HistoryMetric.GPUS, [(CLUSTER, held)]
    yield HistorySubject.CLUSTER, HistoryMetric.FREE, [(CLUSTER, sum(each.free for each in view.free))]
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
        HistorySubject.CARD,
        HistoryMetric.UTILIZATION,
        [(f"{gpu.node}/{gpu.index}", gpu.utilization_ratio) for gpu in view.gpus],
    )


def _owner_utilization(view: ClusterView) -> Iterator[Sample]:
    """Yield the mean utilisation of the cards that each user and each queue has."""
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
    """Yield how full the fullest disk of each node is that speaks."""
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
