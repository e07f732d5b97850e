"""GPU-seconds by hour, node, user and queue, added up from one view of the cluster to the next. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from monitor.facts.base import Fact
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder

HOUR = 3600
DAY = 24 * HOUR
KEEP_DAYS = 400  # for so long it is remembered what happened
MAX_GAP_CYCLES = 3  # a view that is older than so many cycles says nothing any more
FIGURES = ("allocated", "used", "measured", "idle", "zombie", "faulty", "free", "unknown")
ALLOCATED, USED, MEASURED, IDLE, ZOMBIE, FAULTY, FREE, UNKNOWN = range(len(FIGURES))

By = Literal["user", "queue", "node"]
# By hour, node, user and queue: the figures, in the order of FIGURES.
Sums = defaultdict[tuple[int, str, str | None, str | None], list[float]]
_NO_HOLDER: tuple[Holder, ...] = (Holder(),)


class Bucket(Fact, frozen=True, kw_only=True):
    """What cards did within an hour, in GPU-seconds: those of a node, for a user, of a queue. None: not known whose.

    Each second of a card is in exactly one of `allocated` (a live pod has it), `zombie` (somebody sits on it whom
    Kubernetes does not know of), `faulty` (broken, and nobody has it), `free` and `unknown`. `idle` and `used` (by
    utilisation) are parts of `allocated`; `measured` is the part of it of which the utilisation is known.
    """

    hour: int  # when it begins
    node: str | None = None
    user: str | None = None
    queue: str | None = None
    allocated: float = 0.0
    used: float = 0.0
    measured: float = 0.0
    idle: float = 0.0
    zombie: float = 0.0
    faulty: float = 0.0
    free: float = 0.0
    unknown: float = 0.0


def charge(gpus: Iterable[GpuView], hour: int, seconds: float, sums: Sums) -> None:
    """Add to the sums what these cards did for so many seconds. A card of several pods is shared out evenly."""
    for gpu in gpus:
        what, holders = _what(gpu)
        share = seconds if len(holders) == 1 else seconds / len(holders)
        for holder in holders:
            figures = sums[hour, gpu.node, holder.user, holder.queue]
            figures[what] += share
            if what == ALLOCATED:
                if gpu.state is GpuState.IDLE_HELD:
                    figures[IDLE] += share
                if gpu.utilization_ratio is not None:
                    figures[MEASURED] += share
                    figures[USED] += share * gpu.utilization_ratio


def _what(gpu: GpuView) -> tuple[int, Sequence[Holder]]:
    """Return which figure a second of this card counts for, and for whom."""
    state = gpu.state
    if state is GpuState.FREE:
        return FREE, _NO_HOLDER
    if state is GpuState.UNKNOWN:
        return UNKNOWN, _NO_HOLDER
    if state is GpuState.BUSY or state is GpuState.IDLE_HELD or state is GpuState.FAULTY:
        live = [holder for holder in gpu.holders if holder.live is not False]
        if state is GpuState.FAULTY and not live:
            return FAULTY, _NO_HOLDER
        return ALLOCATED, live or _NO_HOLDER
    ended = [holder for holder in gpu.holders if holder.live is False]
    return ZOMBIE, ended or gpu.holders or _NO_HOLDER


def new_sums() -> Sums:
    """Return sums of nothing yet."""
    return defaultdict(lambda: [0.0] * len(FIGURES))


def hours(start: float, end: float) -> Iterator[tuple[int, float]]:
    """Given a stretch of time, yield the hours that it touches, each with how many seconds of it lie within."""
    while start < end:
        hour = int(start // HOUR) * HOUR
        until = min(end, float(hour + HOUR))
        yield hour, until - start
        start = until


class GpuTimeTotals:
    """Adds up what the views say, each until the next one. Used from one thread at a time.

    How much time has passed is told by the monotonic clock, and by the other one only when that was: a clock that is
    set makes nothing out of nothing. Time for which there is no view, or only an old one, counts as not known.
    """

    def __init__(self, cycle: float) -> None:
        self._gap = MAX_GAP_CYCLES * cycle
        self._view: ClusterView | None = None
        self._fresh_at = self._added_at = 0.0  # of the monotonic clock
        self._sums = new_sums()
        self.watched: defaultdict[int, float] = defaultdict(float)  # hour -> seconds for which somebody looked

    def add(self, view: ClusterView, wall: float, monotonic: float) -> None:
        """Take the view that there is now; the one before held until now."""
        if self._view is not None:
            self._count(self._view, wall, monotonic)
        if view is not self._view:
            self._view, self._fresh_at = view, monotonic
        self._added_at = monotonic

    def _count(self, view: ClusterView, wall: float, monotonic: float) -> None:
        elapsed = min(monotonic - self._added_at, DAY)
        known = monotonic - self._fresh_at <= self._gap
        for hour, seconds in hours(wall - elapsed, wall):
            if known:
                self.watched[hour] += seconds
                charge(view.gpus, hour, seconds, self._sums)
            else:
                for gpu in view.gpus:
                    self._sums[hour, gpu.node, None, None][UNKNOWN] += seconds

    def buckets(self) -> tuple[Bucket, ...]:
        """Return what was added up since it was last forgotten."""
        return tuple(
            Bucket(hour=hour, node=node, user=user, queue=queue, **dict(zip(FIGURES, sums, strict=True)))
            for (hour, node, user, queue), sums in self._sums.items()
        )

    def forget(self) -> None:
        """Forget what was added up: somebody has written it down."""
        self._sums.clear()
        self.watched.clear()
