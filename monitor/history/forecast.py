"""When a disk will be full, with the uncertainty of that; no forecast without enough history or a clear trend."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import mean, median, stdev

from monitor.facts.base import Fact
from monitor.history.model import Point

MIN_HISTORY_SECONDS = 6 * 3600.0
MIN_POINTS = 24
MIN_GROWTH_RATIO = 0.01  # of the disk; less is not a trend
MAX_FORECAST_SECONDS = 14 * 86400.0  # twice the history
_SLICE_COUNT = 7  # of the history; the growth from one to the next is compared
_MARGIN_FACTOR = 2.0  # standard errors


class DiskForecast(Fact, frozen=True, kw_only=True):
    """Growth from the last known value, as a share of the disk per second, and when the disk is full.

    `latest_at` is None if it is beyond what can be foreseen.
    """

    at: float
    used: float
    rate: float
    min_rate: float
    max_rate: float
    full_at: float
    earliest_at: float
    latest_at: float | None = None


def disk_forecast(points: Sequence[Point]) -> DiskForecast | None:
    """The forecast from the growth since the last cleanup; None if that is too short, too little or not steady."""
    known = _since_cleanup([(at, value) for at, value in points if value is not None])
    if len(known) < MIN_POINTS or known[-1][0] - known[0][0] < MIN_HISTORY_SECONDS:
        return None
    rates = _rates(known)
    if len(rates) < _SLICE_COUNT - 1 or known[-1][1] - known[0][1] < MIN_GROWTH_RATIO:
        return None
    rate, margin = mean(rates), _MARGIN_FACTOR * stdev(rates) / len(rates) ** 0.5
    if rate - margin <= 0:
        return None
    at, used = known[-1]
    left = max(0.0, 1.0 - used)
    if left / rate > MAX_FORECAST_SECONDS:
        return None
    latest = left / (rate - margin)
    return DiskForecast(
        at=at, used=used, rate=rate, min_rate=rate - margin, max_rate=rate + margin, full_at=at + left / rate,
        earliest_at=at + left / (rate + margin), latest_at=at + latest if latest <= MAX_FORECAST_SECONDS else None,
    )  # fmt: skip


def _since_cleanup(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points since the last decrease from which the disk has not recovered: a cleanup starts another trend."""
    low, start = float("inf"), 0
    for index in range(len(points) - 1, -1, -1):
        if points[index][1] > low + MIN_GROWTH_RATIO:
            start = index + 1
            break
        low = min(low, points[index][1])
    return points[start:]


def _rates(points: list[tuple[float, float]]) -> list[float]:
    """Growth per second between the middles of equal slices of the time; slices without points are skipped."""
    first, length = points[0][0], (points[-1][0] - points[0][0]) / _SLICE_COUNT
    slices: list[list[tuple[float, float]]] = [[] for _ in range(_SLICE_COUNT)]
    for at, value in points:
        slices[min(_SLICE_COUNT - 1, int((at - first) / length))].append((at, value))
    middles = [(mean(at for at, _ in each), median(value for _, value in each)) for each in slices if each]
    return [(later - value) / (until - at) for (at, value), (until, later) in pairwise(middles)]
