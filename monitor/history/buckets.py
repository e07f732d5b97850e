"""Turns codes into the mean and maximum of each step of a range."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.history.blocks import CodeColumn
from monitor.history.model import ENCODINGS, UNITS, UNKNOWN_CODE, HistoryMetric, HistorySeries

_MAX_DIGITS = 6  # significant ones of a value


@dataclass(frozen=True)
class RangeRequest:
    """The steps of a range: `count` values from `start` on."""

    start: int
    step: int
    count: int

    @property
    def end(self) -> int:
        return self.start + self.step * self.count


class RangeBuckets:
    """One figure in `count` steps from `start` on."""

    def __init__(self, metric: HistoryMetric, start: int, step: int, count: int) -> None:
        self._metric = metric
        self._decode = ENCODINGS[metric].decode
        self._start = start
        self._step = step
        self._sums = [0.0] * count
        self._counts = [0] * count
        self._tops = [0.0] * count
        self.known = False

    def add(self, start: int, seconds: int, column: CodeColumn) -> None:
        """Add values that each stand for a time from `start` on. One that is longer than a step fills several."""
        decode, step = self._decode, self._step
        for number, (mean, top) in enumerate(zip(column.means, column.tops, strict=True)):
            if mean == UNKNOWN_CODE:
                continue
            offset = start + number * seconds - self._start
            first = offset // step
            for bucket in range(max(0, first), min(len(self._sums), max(first + 1, (offset + seconds) // step))):
                self.known = True
                self._sums[bucket] += decode(mean)
                self._counts[bucket] += 1
                self._tops[bucket] = max(self._tops[bucket], decode(top))

    def series(self) -> HistorySeries:
        means = (
            _rounded(total / count) if count else None for total, count in zip(self._sums, self._counts, strict=True)
        )
        tops = (_rounded(top) if count else None for top, count in zip(self._tops, self._counts, strict=True))
        return HistorySeries(metric=self._metric, unit=UNITS[self._metric], mean=tuple(means), max=tuple(tops))


def _rounded(value: float) -> float:
    return float(f"{value:.{_MAX_DIGITS}g}")
