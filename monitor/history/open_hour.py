"""The current hour: columns of codes, one per minute, for all series."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from monitor.base.text import natural_key
from monitor.history.blocks import (
    CodeColumn,
    Codes,
    Layout,
    UnpackedBlock,
    encode_layout,
    layout_of,
    pack,
    unknown_codes,
)
from monitor.history.model import (
    COARSE_POINTS,
    ENCODINGS,
    FINE_POINTS,
    METRICS,
    MINUTE_SECONDS,
    UNKNOWN_CODE,
    Entity,
    HistoryMetric,
    HistorySubject,
    Sample,
    coarse_codes,
    group_of,
)
from monitor.history.node_loads import NODE_LOADS_GROUP, NodeLoads, load_bytes

MAX_SERIES_COUNT = 300_000  # 5,000 nodes; the columns of an hour then take 72 MiB
_LOAD_NUMBER = METRICS[HistorySubject.NODE].index(HistoryMetric.UTILIZATION)
_STEP_MINUTES = FINE_POINTS // COARSE_POINTS


@dataclass(frozen=True)
class HourBlock:
    """Figures of one group in one hour, ready to be stored."""

    group: str
    layout: bytes
    fine: bytes
    coarse: bytes


class JournalEntity(NamedTuple):
    """An entity of the journal, and which series of a column belong to it."""

    first: int
    width: int
    subject: str
    name: str


@dataclass(frozen=True)
class JournalMinute:
    """One minute as it is saved: the codes of all series, and the entities that are new since the last save."""

    minute: int
    column: CodeColumn
    entities: tuple[JournalEntity, ...] = ()


class OpenHour:
    """Accumulates samples of one hour. Not thread-safe."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._slots: dict[Entity, int] = {}  # entity -> number of its first series
        self._metrics: list[HistoryMetric] = []  # by series
        self._columns: dict[int, CodeColumn] = {}  # by minute of the hour
        self.minute = -1  # current, of the hour
        self._before: CodeColumn | None = None  # what was known of the current minute before a restart
        self._changed: set[int] = set()  # minutes that are not saved
        self._saved_count = 0  # series whose entities are in the journal
        self._sums: list[float] = []
        self._counts: list[int] = []
        self._tops: list[float] = []

    def add(self, minute: int, samples: Iterable[Sample]) -> None:
        """Add values of a minute of the hour. Without room, entities beyond the first are not recorded."""
        if minute != self.minute:
            self._enter(minute)
        self._changed.add(minute)
        slots, sums, counts, tops = self._slots, self._sums, self._counts, self._tops
        for subject, name, values in samples:
            slot = slots.get((subject, name))
            if slot is None and (slot := self.register((subject, name))) is None:
                continue
            for number, value in enumerate(values, slot):
                if value is not None:
                    sums[number] += value
                    counts[number] += 1
                    if value > tops[number]:
                        tops[number] = value

    def register(self, entity: Entity) -> int | None:
        """Number of the first series of an entity; None if there is no room for it."""
        if entity in self._slots:
            return self._slots[entity]
        metrics, slot = METRICS[entity[0]], len(self._metrics)
        if slot + len(metrics) > MAX_SERIES_COUNT:
            return None
        self._slots[entity] = slot
        self._metrics.extend(metrics)
        self._sums.extend([0.0] * len(metrics))
        self._counts.extend([0] * len(metrics))
        self._tops.extend([0.0] * len(metrics))
        return slot

    def unsaved(self) -> tuple[JournalMinute, ...]:
        """The minutes that the journal does not have as they are."""
        self._encode()
        new = [(slot, entity) for entity, slot in self._slots.items() if slot >= self._saved_count]
        entities = tuple(JournalEntity(slot, len(METRICS[e[0]]), e[0].value, e[1]) for slot, e in new)
        return tuple(
            JournalMinute(minute, self._columns[minute], () if number else entities)
            for number, minute in enumerate(sorted(self._changed))
        )

    def mark_saved(self) -> None:
        """The journal has everything up to now."""
        self._changed.clear()
        self._saved_count = len(self._metrics)

    def restore(self, minutes: Sequence[JournalMinute]) -> None:
        """Take over the journal of an hour. What a gap in it makes unclear is dropped."""
        for entity in sorted(entity for minute in minutes for entity in minute.entities):
            known = (HistorySubject(entity.subject), entity.name)
            if known not in self._slots:
                if entity.first != len(self._metrics) or entity.width != len(METRICS[known[0]]):
                    break
                self.register(known)
        width = len(self._metrics)
        for minute in minutes:
            self._columns[minute.minute] = CodeColumn(minute.column.means[:width], minute.column.tops[:width])
        self.mark_saved()

    def restore_block(self, layout: Layout, block: UnpackedBlock) -> None:
        """Take over what only a stored block knows: the clock was set back into its hour. Raise BlockError."""
        number = 0
        for part in layout:
            known = [metric.value for metric in METRICS.get(HistorySubject(part.subject), ())]
            for name in part.names:
                slot = self.register((HistorySubject(part.subject), name))
                for metric in part.metrics:
                    if slot is not None and metric in known:
                        self._restore_series(slot + known.index(metric), block.series(number))
                    number += 1

    def series(self, entity: Entity) -> dict[HistoryMetric, CodeColumn]:
        """Codes of an entity's figures by minute; empty if it is not recorded."""
        slot = self._slots.get(entity)
        if slot is None:
            return {}
        return {metric: self._series(number) for number, metric in enumerate(METRICS[entity[0]], slot)}

    def node_loads(self) -> NodeLoads:
        """Utilisation of all nodes by the minute."""
        slots = {
            name: slot + _LOAD_NUMBER for (subject, name), slot in self._slots.items() if subject is HistorySubject.NODE
        }
        names = tuple(sorted(slots, key=natural_key))
        numbers = [slots[name] for name in names]
        minutes = (load_bytes(self._means(minute, numbers)) for minute in range(FINE_POINTS))
        return NodeLoads(self.start, MINUTE_SECONDS, names, b"".join(minutes))

    def blocks(self) -> Iterator[HourBlock]:
        """The hour as blocks, one per group."""
        loads = self.node_loads()
        yield HourBlock(NODE_LOADS_GROUP, encode_layout(loads.layout()), loads.packed(), loads.packed_coarse())
        groups: dict[str, list[Entity]] = {}
        for entity in self._slots:
            groups.setdefault(group_of(*entity), []).append(entity)
        self._encode()
        means, tops = self._flat([column.means for column in self._all()]), self._flat([c.tops for c in self._all()])
        width = len(self._metrics)
        for group, entities in groups.items():
            entities.sort()
            numbers = [slot + n for entity in entities for slot, n in self._numbers(entity)]
            fine = [CodeColumn(means[number::width], tops[number::width]) for number in numbers]
            coarse = [_coarse(self._metrics[number], column) for number, column in zip(numbers, fine, strict=True)]
            yield HourBlock(group, encode_layout(layout_of(entities, METRICS)), pack(fine), pack(coarse))

    def _numbers(self, entity: Entity) -> Iterator[tuple[int, int]]:
        slot = self._slots[entity]
        return ((slot, number) for number in range(len(METRICS[entity[0]])))

    def _enter(self, minute: int) -> None:
        self._encode()
        self.minute, self._before = minute, self._columns.get(minute)
        count = len(self._metrics)
        self._sums, self._counts, self._tops = [0.0] * count, [0] * count, [0.0] * count

    def _encode(self) -> CodeColumn:
        """The column of the current minute, up to now."""
        means, tops = array("H"), array("H")
        for number in range(len(self._metrics)):
            mean, top = self._current(number)
            means.append(mean)
            tops.append(top)
        column = CodeColumn(means, tops)
        if self.minute >= 0:
            self._columns[self.minute] = column
        return column

    def _current(self, number: int) -> tuple[int, int]:
        """Mean and maximum of a series in the current minute; without a sample, what was known before a restart."""
        count = self._counts[number]
        if count:
            encode = ENCODINGS[self._metrics[number]].encode
            return encode(self._sums[number] / count), encode(self._tops[number])
        if self._before is not None and number < len(self._before.means):
            return self._before.means[number], self._before.tops[number]
        return UNKNOWN_CODE, UNKNOWN_CODE

    def _restore_series(self, number: int, series: CodeColumn) -> None:
        for minute, (mean, top) in enumerate(zip(series.means, series.tops, strict=True)):
            if mean != UNKNOWN_CODE:
                column = self._columns.setdefault(minute, CodeColumn(array("H"), array("H")))
                self._changed.add(minute)
                for codes, code in ((column.means, mean), (column.tops, top)):
                    codes.extend(unknown_codes(number + 1 - len(codes)))
                    codes[number] = code if codes[number] == UNKNOWN_CODE else codes[number]

    def _means(self, minute: int, numbers: Iterable[int]) -> Iterable[int]:
        """Mean codes of some series in one minute."""
        if minute == self.minute:
            return (self._current(number)[0] for number in numbers)
        column = self._columns.get(minute)
        means = column.means if column is not None else ()
        return (means[number] if number < len(means) else UNKNOWN_CODE for number in numbers)

    def _series(self, number: int) -> CodeColumn:
        means, tops = unknown_codes(FINE_POINTS), unknown_codes(FINE_POINTS)
        for minute, column in self._columns.items():
            if number < len(column.means):
                means[minute], tops[minute] = column.means[number], column.tops[number]
        if self.minute >= 0:
            means[self.minute], tops[self.minute] = self._current(number)
        return CodeColumn(means, tops)

    def _all(self) -> list[CodeColumn]:
        nothing = CodeColumn(array("H"), array("H"))
        return [self._columns.get(minute, nothing) for minute in range(FINE_POINTS)]

    def _flat(self, columns: list[Codes]) -> Codes:
        """All columns behind each other, each as long as there are series."""
        flat, width = array("H"), len(self._metrics)
        for codes in columns:
            flat.extend(codes)
            flat.extend(unknown_codes(width - len(codes)))
        return flat


def _coarse(metric: HistoryMetric, fine: CodeColumn) -> CodeColumn:
    means, tops = array("H"), array("H")
    for first in range(0, FINE_POINTS, _STEP_MINUTES):
        last = first + _STEP_MINUTES
        mean, top = coarse_codes(metric, fine.means[first:last], fine.tops[first:last])
        means.append(mean)
        tops.append(top)
    return CodeColumn(means, tops)
