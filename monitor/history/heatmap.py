"""GPU utilisation of all nodes over time, for a heat map. Rows are groups of nodes if there are many."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monitor.base.text import NaturalKey, natural_key
from monitor.facts.base import Fact
from monitor.history.buckets import RangeRequest
from monitor.history.node_loads import UNKNOWN_LOAD_CODE, NodeLoads, load_ratio

MAX_HEAT_ROWS = 50
MAX_HEAT_COLUMNS = 100
HEAT_STEPS_SECONDS = (60, 120, 300, 600, 1200, 3600, 7200)
_RATIO_DIGITS = 3  # after the point


class HeatRow(Fact, frozen=True, kw_only=True):
    """Mean utilisation of the GPUs of one node in each step, or of `nodes` nodes from `first` to `last` by name.

    None where it is unknown.
    """

    first: str
    last: str
    nodes: int
    mean: tuple[float | None, ...]


class HeatMap(Fact, frozen=True, kw_only=True):
    """Utilisation of all nodes from `start` on, one value per step and row."""

    start: int
    step_seconds: int
    nodes: int
    rows: tuple[HeatRow, ...] = ()


@dataclass(frozen=True)
class NameRange:
    """Nodes from one name to another, both included, in natural order; None is open."""

    first: str | None = None
    last: str | None = None

    def select(self, names: Iterable[str]) -> list[str]:
        """Those of the names in this range, in order."""
        low = None if self.first is None else natural_key(self.first)
        high = None if self.last is None else natural_key(self.last)
        keys = ((natural_key(name), name) for name in names)
        return [name for key, name in sorted(keys) if (low is None or low <= key) and (high is None or key <= high)]


def make_heat_map(wanted: RangeRequest, hours: Sequence[NodeLoads], nodes: NameRange) -> HeatMap:
    """The map of the nodes that the hours know."""
    names = nodes.select({name for known in {hour.names for hour in hours} for name in known})
    size = max(1, -(-len(names) // MAX_HEAT_ROWS))
    groups = [names[first : first + size] for first in range(0, len(names), size)]
    sums = _RowSums(wanted, groups)
    for hour in hours:
        sums.add(hour)
    rows = tuple(
        HeatRow(first=group[0], last=group[-1], nodes=len(group), mean=mean)
        for group, mean in zip(groups, sums.means(), strict=True)
    )
    return HeatMap(start=wanted.start, step_seconds=wanted.step, nodes=len(names), rows=rows)


class _RowSums:
    """Sums of each row and step."""

    def __init__(self, wanted: RangeRequest, groups: Sequence[Sequence[str]]) -> None:
        self._wanted = wanted
        self._bounds = [(natural_key(group[0]), natural_key(group[-1])) for group in groups]
        self._sums = [[0] * wanted.count for _ in groups]
        self._counts = [[0] * wanted.count for _ in groups]
        self._slices: dict[tuple[str, ...], list[tuple[int, int, int]]] = {}  # hours mostly have the same nodes

    def add(self, hour: NodeLoads) -> None:
        """Add the points of an hour. One that is longer than a step fills several."""
        wanted, width = self._wanted, len(hour.names)
        slices = self._slices_of(hour.names)
        for point in range(hour.point_count):
            offset = hour.start + point * hour.point_seconds - wanted.start
            first = offset // wanted.step
            last = max(first + 1, (offset + hour.point_seconds) // wanted.step)
            columns = range(max(0, first), min(wanted.count, last))
            if columns:
                self._add_point(hour.codes[point * width : (point + 1) * width], slices, columns)

    def means(self) -> list[tuple[float | None, ...]]:
        return [tuple(map(_mean, *row)) for row in zip(self._sums, self._counts, strict=True)]

    def _add_point(self, codes: bytes, slices: Sequence[tuple[int, int, int]], columns: range) -> None:
        for row, low, high in slices:
            part = codes[low:high]
            unknown = part.count(UNKNOWN_LOAD_CODE)
            if unknown < len(part):
                total, count = sum(part) - unknown * UNKNOWN_LOAD_CODE, len(part) - unknown
                for column in columns:
                    self._sums[row][column] += total
                    self._counts[row][column] += count

    def _slices_of(self, names: tuple[str, ...]) -> list[tuple[int, int, int]]:
        """Row, and where the codes of its nodes begin and end among those of these names."""
        if names not in self._slices:
            keys: list[NaturalKey] = [natural_key(name) for name in names]
            found = (
                (row, bisect_left(keys, first), bisect_right(keys, last))
                for row, (first, last) in enumerate(self._bounds)
            )
            self._slices[names] = [each for each in found if each[1] < each[2]]
        return self._slices[names]


def _mean(total: int, count: int) -> float | None:
    return round(load_ratio(total, count), _RATIO_DIGITS) if count else None
