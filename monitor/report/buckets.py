"""GPU-seconds by hour, node, user, queue and model, accumulated from one view of the cluster to the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add, attrgetter
from typing import Literal

from monitor.cluster.holders import ended_holders, has_ended, held_part
from monitor.facts.base import Fact
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder

HOUR = 3600
DAY = 24 * HOUR
KEEP_DAYS = 400  # retention
MAX_SHARE_DECIMALS = 3  # bounds the number of different shares
MAX_GAP_CYCLES = 3  # an older view counts as unknown
FIGURES = ("allocated", "used", "measured", "idle", "zombie", "faulty", "free", "unknown")
ALLOCATED, USED, MEASURED, IDLE, ZOMBIE, FAULTY, FREE, UNKNOWN = range(len(FIGURES))

By = Literal["user", "queue", "node"]
# Model of a GPU, and the part of it that each second stands for: 1 for whole GPUs and what is divided evenly.
Priced = tuple[str | None, float]
UNPRICED: Priced = (None, 1.0)  # the model or the size of the share is unknown
# By hour, node, user, queue and model: the figures, in the order of FIGURES.
Sums = defaultdict[tuple[int, str, str | None, str | None, Priced], list[float]]
_PARTS: dict[By, Literal[1, 2, 3]] = {"node": 1, "user": 2, "queue": 3}  # of a key of Sums
_NO_HOLDER: tuple[Holder, ...] = (Holder(),)


class Bucket(Fact, frozen=True, kw_only=True):
    """GPU-seconds of one hour by node, user, queue and model. None: the owner or the model is unknown.

    Each second of a GPU is in exactly one of `allocated` (held by a live pod), `zombie` (held without the knowledge of
    Kubernetes), `faulty` (broken and not held), `free` and `unknown`. `idle` and `used` (by utilisation) are parts of
    `allocated`; `measured` is the part of it with known utilisation. `share` is the part of a GPU that each second
    costs: less than 1 for MIG slices. A share of unknown size has no model.
    """

    hour: int  # start
    node: str | None = None
    user: str | None = None
    queue: str | None = None
    model: str | None = None
    share: float = 1.0
    allocated: float = 0.0
    used: float = 0.0
    measured: float = 0.0
    idle: float = 0.0
    zombie: float = 0.0
    faulty: float = 0.0
    free: float = 0.0
    unknown: float = 0.0


def charge(gpus: Iterable[GpuView], hour: int, seconds: float, sums: Sums) -> None:
    """Add `seconds` of each GPU to the sums. The time of a GPU held by several pods is divided evenly."""
    for gpu in gpus:
        figure, holders = _figure(gpu)
        share = seconds if len(holders) == 1 else seconds / len(holders)
        for holder in holders:
            priced = _priced(gpu, holder, len(holders))
            figures = sums[hour, gpu.node, holder.user, holder.queue, priced]
            figures[figure] += share
            if figure == ALLOCATED:
                if gpu.state is GpuState.IDLE_HELD:
                    figures[IDLE] += share
                if gpu.utilization_ratio is not None:
                    figures[MEASURED] += share
                    figures[USED] += share * gpu.utilization_ratio


def _priced(gpu: GpuView, holder: Holder, holders: int) -> Priced:
    """Model of a GPU, and the part of it that each second of a holder stands for, as the time is divided evenly."""
    if holder.device_ratio == 1.0:
        return gpu.model, 1.0
    part = held_part(holder, holders)
    return UNPRICED if part is None else (gpu.model, round(part * holders, MAX_SHARE_DECIMALS))


def _figure(gpu: GpuView) -> tuple[int, Sequence[Holder]]:
    """Index of the figure to which the time of a GPU counts, and the holders charged with it."""
    state = gpu.state
    if state is GpuState.FREE:
        return FREE, _NO_HOLDER
    if state is GpuState.UNKNOWN:
        return UNKNOWN, _NO_HOLDER
    if state is GpuState.BUSY or state is GpuState.IDLE_HELD or state is GpuState.FAULTY:
        held = [holder for holder in gpu.holders if not has_ended(holder)]
        if state is GpuState.FAULTY and not held:
            return FAULTY, _NO_HOLDER
        return ALLOCATED, held or _NO_HOLDER
    return ZOMBIE, ended_holders(gpu) or gpu.holders or _NO_HOLDER


def new_sums() -> Sums:
    """Empty sums."""
    return defaultdict(lambda: [0.0] * len(FIGURES))


def hours(start: float, end: float) -> Iterator[tuple[int, float]]:
    """Hours that a period overlaps, each with the seconds of the overlap."""
    while start < end:
        hour = int(start // HOUR) * HOUR
        until = min(end, float(hour + HOUR))
        yield hour, until - start
        start = until


figures_of: Callable[[Bucket], tuple[float, ...]] = attrgetter(*FIGURES)


class GpuTimeTotals:
    """Accumulates views, each valid until the next one. Used from one thread at a time.

    The monotonic clock measures durations and the wall clock only assigns them to hours, so setting the wall clock
    adds no time. Time without a view, or with an old one, counts as unknown.
    """

    def __init__(self, cycle: float) -> None:
        self._gap = MAX_GAP_CYCLES * cycle
        self._view: ClusterView | None = None
        self._fresh_at = self._added_at = 0.0  # of the monotonic clock
        self._sums = new_sums()
        self.watched: defaultdict[int, float] = defaultdict(float)  # hour -> seconds with a current view

    def add(self, view: ClusterView, wall: float, monotonic: float) -> None:
        """Replace the current view, which was valid until now."""
        if self._view is not None:
            self._count(self._view, wall, monotonic)
        if view is not self._view:
            self._view, self._fresh_at = view, monotonic
        self._added_at = monotonic

    def _count(self, view: ClusterView, wall: float, monotonic: float) -> None:
        elapsed = min(monotonic - self._added_at, DAY)
        current = monotonic - self._fresh_at <= self._gap
        for hour, seconds in hours(wall - elapsed, wall):
            if current:
                self.watched[hour] += seconds
                charge(view.gpus, hour, seconds, self._sums)
            else:
                for gpu in view.gpus:
                    self._sums[hour, gpu.node, None, None, (gpu.model, 1.0)][UNKNOWN] += seconds

    def buckets(self) -> tuple[Bucket, ...]:
        """Sums since the last forget()."""
        return tuple(
            Bucket(
                hour=hour,
                node=node,
                user=user,
                queue=queue,
                model=model,
                share=share,
                **dict(zip(FIGURES, sums, strict=True)),
            )
            for (hour, node, user, queue, (model, share)), sums in self._sums.items()
        )

    def sums(self, by: By) -> dict[tuple[int, str | None, Priced], list[float]]:
        """Sums since the last forget(), by hour, user, queue or node, and model."""
        part = _PARTS[by]
        sums: dict[tuple[int, str | None, Priced], list[float]] = {}
        for key, figures in self._sums.items():
            group = key[0], key[part], key[4]
            known = sums.get(group)
            sums[group] = figures if known is None else list(map(add, known, figures))
        return sums

    def forget(self) -> None:
        """Drop the sums after they have been stored."""
        self._sums.clear()
        self.watched.clear()
