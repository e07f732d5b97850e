"""Reads ranges of the history, from memory and store, or from a Prometheus server."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from monitor.base.http import RequestError
from monitor.history.blocks import BlockError, CodeColumn, positions
from monitor.history.buckets import RangeBuckets
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


class RangeSource(Protocol):
    """A server that has the figures, too."""

    def read(self, subject: HistorySubject, name: str, start: int, step: int, count: int) -> HistoryRange:
        """Raise RequestError."""
        ...


@dataclass(frozen=True)
class RangeRequest:
    """The steps of a range: `count` values from `start` on."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.step * self.count


def range_request(span: float, until: float, now: float) -> RangeRequest:
    """The steps that cover `span` seconds before a time. Raise ValueError if that is not kept."""
    if not MINUTE_SECONDS <= span <= SPAN_SECONDS:
        raise ValueError("span is a duration from 1m to 7d")
    if not now - SPAN_SECONDS <= until <= now + SPAN_SECONDS:
        raise ValueError("until is a Unix time within the last 7 days")
    is_fine = until - span >= now - FINE_SPAN_SECONDS - HOUR_SECONDS
    steps = STEPS_SECONDS if is_fine else STEPS_SECONDS[-1:]
    step = next((step for step in steps if span / step <= MAX_RANGE_POINTS), steps[-1])
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
        self._cached: dict[tuple[HistorySubject, str, RangeRequest], HistoryRange] = {}
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
        wanted, minute = range_request(span, now, now), int(now // MINUTE_SECONDS)
        key = (subject, name, wanted)
        with self._lock:
            if minute != self._minute or len(self._cached) >= MAX_CACHED_RANGES:
                self._minute, self._cached = minute, {}
            if key in self._cached:
                return self._cached[key]  # the same object: what follows from it can be cached, too
        found = self.recorded(subject, name, wanted)
        with self._lock:
            self._cached[key] = found
        return found

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
