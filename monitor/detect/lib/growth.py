"""Growth of disk usage, judged so that neither a single large copy nor a regular cleanup looks like a trend.

The history of a disk is a flat list of numbers, [time, MiB, time, MiB, ...], because it is saved for every disk of the
cluster: the last hour in steps of five minutes, before that in steps of half an hour, eight hours in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

MIB = 1024**2
FINE_STEP_SECONDS, FINE_SPAN_SECONDS = 300, 3600
COARSE_STEP_SECONDS, COARSE_SPAN_SECONDS = 1800, 8 * 3600
_MIN_FAST_STEPS = 8  # five minutes each
_MIN_SLOW_STEPS = 12  # half an hour each; with fewer, one two-hour copy looks like a trend
_OUTLIER_COUNT = 2
_RECENT_STEP_COUNT = 4
_CLEANUP_RATIO = 0.02  # of the disk's size; a smaller drop is not a cleanup


@dataclass(frozen=True)
class GrowthTrend:
    """Sustained growth: bytes per second, and the seconds over which it was observed."""

    rate: float
    window: float
    grown_bytes: int


def append_point(points: list[int], now: float, used_bytes: int) -> list[int]:
    """The history with the current usage; unchanged if the last point is too recent."""
    at = int(now)
    age = at - points[-2] if points else 0
    if points and 0 <= age < FINE_STEP_SECONDS:
        return points
    if not 0 <= age < COARSE_SPAN_SECONDS:
        points = []  # the clock was set back, or the gap is too long
    return _thinned([*points, at, used_bytes // MIB], at)


def _thinned(points: list[int], now: int) -> list[int]:
    """Drop expired points; beyond the last hour keep one per half hour, and the peaks."""
    result: list[int] = []
    last = -COARSE_STEP_SECONDS
    for index in range(0, len(points), 2):
        at, used = points[index], points[index + 1]
        if at < now - COARSE_SPAN_SECONDS:
            continue
        falls = index + 3 < len(points) and points[index + 3] < used * (1 - _CLEANUP_RATIO)
        if falls or at >= now - FINE_SPAN_SECONDS or at - last >= COARSE_STEP_SECONDS:
            result += (at, used)
            last = at
    return result


def may_fill(points: Sequence[int], available_bytes: int, horizon: float) -> bool:
    """Cheap check whether a trend is worth computing: nearly all disks of a cluster do not grow."""
    if len(points) < 2 * (_MIN_FAST_STEPS + 1):
        return False
    for start in (0, max(0, len(points) - 2 * (FINE_SPAN_SECONDS // FINE_STEP_SECONDS + 1))):
        grown = (points[-1] - points[start + 1]) * MIB
        if grown > 0 and 2 * grown / max(1, points[-2] - points[start]) * horizon >= available_bytes:
            return True
    return False


def fast_trend(points: Sequence[int], size_bytes: int) -> GrowthTrend | None:
    """Growth over the last hour, if steady."""
    pairs = _pairs(points)
    if _below_cleanup_level(pairs, size_bytes):
        return None
    return _trend([pair for pair in pairs if pair[0] >= points[-2] - FINE_SPAN_SECONDS], _MIN_FAST_STEPS, 0.65)


def slow_trend(points: Sequence[int], size_bytes: int) -> GrowthTrend | None:
    """Growth over the last hours; may be stepwise, as with checkpoints."""
    pairs, sampled = _pairs(points), list[tuple[int, int]]()
    if _below_cleanup_level(pairs, size_bytes):
        return None
    for pair in reversed(pairs):
        if not sampled or sampled[-1][0] - pair[0] >= COARSE_STEP_SECONDS:
            sampled.append(pair)
    return _trend(sampled[::-1], _MIN_SLOW_STEPS, 0.4)


def _pairs(points: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(points[::2], points[1::2], strict=True))


def _trend(points: list[tuple[int, int]], min_steps: int, growing_share: float) -> GrowthTrend | None:
    """Mean growth without the largest steps, if enough steps grew and the latest still do."""
    steps = [(b - a, t - s) for (s, a), (t, b) in pairwise(points)]
    if len(steps) < min_steps:
        return None
    usual = sorted(steps, key=lambda step: step[0] / step[1])[:-_OUTLIER_COUNT]
    rate = sum(grown for grown, _ in usual) / sum(seconds for _, seconds in usual)
    recent = steps[-_RECENT_STEP_COUNT:]
    recent_rate = sum(grown for grown, _ in recent) / sum(seconds for _, seconds in recent)
    growing = sum(grown > 0.1 * rate * seconds for grown, seconds in steps)
    if rate <= 0 or recent_rate < rate / 2 or growing < growing_share * len(steps):
        return None
    return GrowthTrend(rate * MIB, points[-1][0] - points[0][0], (points[-1][1] - points[0][1]) * MIB)


def _below_cleanup_level(points: list[tuple[int, int]], size_bytes: int) -> bool:
    """Whether usage is below the level at which it was last cleaned up, so that a cleanup handles it."""
    peak, ceiling, little = 0, -1.0, _CLEANUP_RATIO * size_bytes / MIB
    for _, used in points:
        peak = max(peak, used)
        if peak - used >= little:
            peak, ceiling = used, max(ceiling, peak)
    return points[-1][1] <= ceiling + little
