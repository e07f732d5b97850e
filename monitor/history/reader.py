"""Reads ranges of the history, from memory and store, or from a Prometheus server."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from monitor.base.http import RequestError
from monitor.history.blocks import BlockError, CodeColumn, positions
from monitor.history.buckets import RangeBuckets, RangeRequest
from monitor.history.heatmap import HEAT_STEPS_SECONDS, MAX_HEAT_COLUMNS, HeatMap, NameRange, make_heat_map
from monitor.history.model import (
    COARSE_SECONDS,
    FINE_SPAN_SECONDS,
    HOUR_SECONDS,
    METRICS,
    MINUTE_SECONDS,
    SPAN_SECONDS,
    HistoryMetric,
    HistoryRange,
    HistorySubject,
    group_of,
)
from monitor.history.recorder import HistoryRecorder

log = logging.getLogger(__name__)
MAX_RANGE_POINTS = 1100
MAX_CACHED_RANGES = 200
STEPS_SECONDS = (MINUTE_SECONDS, 2 * MINUTE_SECONDS, 5 * MINUTE_SECONDS, COARSE_SECONDS)
T = TypeVar("T")
_POINTS_SECONDS = (HOUR_SECONDS, COARSE_SECONDS, MINUTE_SECONDS)


class RangeSource(Protocol):
    """A server that has the figures, too."""

    def read(self, subject: HistorySubject, name: str, start: int, step: int, count: int) -> HistoryRange:
        """Raise RequestError."""
        ...


def range_request(
    span: float, until: float, now: float, steps: Sequence[int] = STEPS_SECONDS, most: int = MAX_RANGE_POINTS
) -> RangeRequest:
    """At most as many steps that cover `span` seconds before a time. Raise ValueError if that is not kept."""
    if not MINUTE_SECONDS <= span <= SPAN_SECONDS:
        raise ValueError("span is a duration from 1m to 7d")
    if not now - SPAN_SECONDS <= until <= now + SPAN_SECONDS:
        raise ValueError("until is a Unix time within the last 7 days")
    is_fine = until - span >= now - FINE_SPAN_SECONDS - HOUR_SECONDS
    possible = [step for step in steps if is_fine or step >= COARSE_SECONDS]
    step = next((step for step in possible if span / step <= most), possible[-1])
    count = int(-(-span // step))
    end = int(until // step + 1) * step
    return RangeRequest(end - count * step, step, count)


class HistoryReader:
    """Reads ranges; the latest are cached for a minute. `source` is asked first, if there is one. Thread-safe."""

    def __init__(
        self, recorder: HistoryRecorder, source: RangeSource | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self._recorder = recorder
        self._source = source
        self._now = now
        self._lock = threading.Lock()
        self._found: dict[object, Any] = {}  # in this minute, by request
        self._minute = 0

    def read(self, subject: HistorySubject, name: str, span: float, until: float | None = None) -> HistoryRange:
        """All figures of an entity for `span` seconds until now, or another time. Raise ValueError or DatabaseError."""
        now = self._now()
        wanted = range_request(span, now if until is None else until, now)
        if self._source is not None:
            try:
                return self._source.read(subject, name, wanted.start, wanted.step, wanted.count)
            except RequestError as error:
                log.warning("the history of %s %s is not read from Prometheus: %s", subject, name, error)
        return self.recorded(subject, name, wanted)

    def recent(self, subject: HistorySubject, name: str, span: float) -> HistoryRange:
        """The same as recorded here, from the cache if it was read within this minute."""
        now = self._now()
        wanted = range_request(span, now, now)
        return self._cached((subject, name, wanted), now, lambda: self.recorded(subject, name, wanted))

    def _cached(self, key: object, now: float, read: Callable[[], T]) -> T:
        """What was read within this minute: the same object, so that what follows from it can be cached, too."""
        minute = int(now // MINUTE_SECONDS)
        with self._lock:
            if minute != self._minute or len(self._found) >= MAX_CACHED_RANGES:
                self._minute, self._found = minute, {}
            if key in self._found:
                found: T = self._found[key]
                return found
        found = read()
        with self._lock:
            self._found[key] = found
        return found

    def heat_map(self, span: float, until: float | None, nodes: NameRange) -> HeatMap:
        """Utilisation of all nodes, or a range of them, as recorded here. Raise ValueError or DatabaseError."""
        now = self._now()
        wanted = range_request(span, now if until is None else until, now, HEAT_STEPS_SECONDS, MAX_HEAT_COLUMNS)
        return self._cached((wanted, nodes), now, lambda: self._heat_map(wanted, nodes))

    def _heat_map(self, wanted: RangeRequest, nodes: NameRange) -> HeatMap:
        seconds = next(each for each in _POINTS_SECONDS if each <= wanted.step)
        unsaved = {hour.start: hour.by(seconds) for hour in self._recorder.node_loads()}
        since = wanted.start // HOUR_SECONDS * HOUR_SECONDS
        stored = self._recorder.store.node_loads(since, wanted.end, seconds)
        hours = [*(hour for hour in stored if hour.start not in unsaved), *unsaved.values()]
        return make_heat_map(wanted, hours, nodes)

    def recorded(self, subject: HistorySubject, name: str, wanted: RangeRequest) -> HistoryRange:
        """Figures from memory and store. Raise DatabaseError."""
        buckets = {metric: RangeBuckets(metric, wanted.start, wanted.step, wanted.count) for metric in METRICS[subject]}
        unsaved = self._recorder.series((subject, name))
        since, fine = wanted.start // HOUR_SECONDS * HOUR_SECONDS, wanted.step < COARSE_SECONDS
        blocks = self._recorder.store.blocks(group_of(subject, name), since, wanted.end, fine=fine)
        for stored in blocks:
            if stored.hour in unsaved:
                continue
            numbers = positions(stored.layout, subject, name)
            seconds = MINUTE_SECONDS if stored.fine else COARSE_SECONDS
            known = [metric for metric in buckets if metric in numbers]
            decoded = ((metric, stored.block.series(numbers[metric])) for metric in known)
            try:
                _add(buckets, stored.hour, seconds, decoded)
            except BlockError as error:
                log.warning("a block of the history cannot be read: %s", error)
        for hour, columns in unsaved.items():
            _add(buckets, hour, MINUTE_SECONDS, columns.items())
        series = tuple(each.series() for each in buckets.values() if each.known)
        return HistoryRange(subject=subject, name=name, start=wanted.start, step_seconds=wanted.step, series=series)


def _add(
    buckets: dict[HistoryMetric, RangeBuckets],
    hour: int,
    seconds: int,
    columns: Iterable[tuple[HistoryMetric, CodeColumn]],
) -> None:
    for metric, column in columns:
        buckets[metric].add(hour, seconds, column)
