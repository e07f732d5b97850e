"""Compressed blocks of codes: differences from minute to minute, low and high bytes apart, deflated.

A layout lists the entities of a block. Those of a group rarely change, so that layouts are stored once.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypeAlias

import msgspec

from monitor.facts.base import Fact
from monitor.history.model import UNKNOWN_CODE, Entity, HistoryMetric, HistorySubject

MAX_BLOCK_BYTES = 64 << 20  # decompressed; a column of a minute may be large
MIN_LEVEL, MAX_LEVEL = 1, 6  # of compression: fast, and small
_BIAS_CODE = 128  # small differences, also negative ones, have a high byte of 0

Codes: TypeAlias = "array[int]"


class CodeColumn(NamedTuple):
    """Means and maxima of many series in one minute, or of one series in many."""

    means: Codes
    tops: Codes


class LayoutPart(Fact, frozen=True, array_like=True):
    """Entities of one subject, each with the same figures."""

    subject: str
    metrics: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.metrics) * len(self.names)


Layout = tuple[LayoutPart, ...]


class BlockError(ValueError):
    """A stored block cannot be decoded."""


def encode_layout(layout: Layout) -> bytes:
    """A layout as it is stored."""
    return zlib.compress(msgspec.json.encode(layout), MAX_LEVEL)


def decode_layout(body: bytes) -> Layout:
    """Raise BlockError."""
    try:
        return msgspec.json.decode(inflated(body), type=Layout)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BlockError(str(error)) from None


def layout_of(entities: Iterable[Entity], metrics: Mapping[HistorySubject, Sequence[HistoryMetric]]) -> Layout:
    """Layout of entities that are sorted by subject."""
    names: dict[HistorySubject, list[str]] = {}
    for subject, name in entities:
        names.setdefault(subject, []).append(name)
    return tuple(
        LayoutPart(subject.value, tuple(metric.value for metric in metrics[subject]), tuple(named))
        for subject, named in names.items()
    )


def positions(layout: Layout, subject: HistorySubject, name: str) -> dict[str, int]:
    """Number of each series of an entity in its block, by metric; empty if the block has none."""
    first = 0
    for part in layout:
        if part.subject == subject and name in part.names:
            first += part.names.index(name) * len(part.metrics)
            return {metric: first + number for number, metric in enumerate(part.metrics)}
        first += part.count
    return {}


def pack(series: Iterable[CodeColumn]) -> bytes:
    """Series of equal length as a block."""
    codes = array("H")
    for column in series:
        means = column.means
        codes.append((means[0] + _BIAS_CODE) & UNKNOWN_CODE)
        codes.extend([(after - before + _BIAS_CODE) & UNKNOWN_CODE for before, after in pairwise(means)])
        codes.extend([(top - mean) & UNKNOWN_CODE for mean, top in zip(means, column.tops, strict=True)])
    return zlib.compress(_planes(codes), MAX_LEVEL)


class UnpackedBlock:
    """A block whose series are decoded when they are asked for."""

    def __init__(self, body: bytes, points: int) -> None:
        """Raise BlockError."""
        self._raw = inflated(body)
        self._points = points
        if len(self._raw) % (4 * points):
            raise BlockError("a block has an odd length")
        self.count = len(self._raw) // (4 * points)

    def series(self, number: int) -> CodeColumn:
        """Raise BlockError if there is no such series."""
        if not 0 <= number < self.count:
            raise BlockError("a block has fewer series than its layout")
        points = self._points
        codes = _joined(self._raw, 2 * points * number, 2 * points)
        running = accumulate(codes[:points], _following, initial=0)
        means = array("H", running)[1:]
        tops = array("H", [(mean + above) & UNKNOWN_CODE for mean, above in zip(means, codes[points:], strict=True)])
        return CodeColumn(means, tops)


def _following(code: int, change: int) -> int:
    return (code + change - _BIAS_CODE) & UNKNOWN_CODE


def pack_column(column: CodeColumn) -> bytes:
    """The codes of all series in one minute."""
    return zlib.compress(_planes(column.means + column.tops), MIN_LEVEL)


def unpack_column(body: bytes) -> CodeColumn:
    """Raise BlockError."""
    raw = inflated(body)
    if len(raw) % 4:
        raise BlockError("a column has an odd length")
    codes, count = _joined(raw, 0, len(raw) // 2), len(raw) // 4
    return CodeColumn(codes[:count], codes[count:])


def unknown_codes(count: int) -> Codes:
    """As many unknown values."""
    return array("H", [UNKNOWN_CODE]) * count


def _planes(codes: Codes) -> bytes:
    raw = _little_endian(codes).tobytes()
    return raw[::2] + raw[1::2]


def _joined(raw: bytes, first: int, count: int) -> Codes:
    """Codes whose low and high bytes lie in the two halves of `raw`."""
    middle, mixed = len(raw) // 2, bytearray(2 * count)
    mixed[::2] = raw[first : first + count]
    mixed[1::2] = raw[middle + first : middle + first + count]
    return _little_endian(array("H", bytes(mixed)))


def _little_endian(codes: Codes) -> Codes:
    if sys.byteorder == "big":
        codes = array("H", codes)
        codes.byteswap()
    return codes


def inflated(body: bytes) -> bytes:
    """Raise BlockError if it is damaged or too large."""
    inflate = zlib.decompressobj()
    try:
        raw = inflate.decompress(body, MAX_BLOCK_BYTES)
    except zlib.error as error:
        raise BlockError(str(error)) from None
    if not inflate.eof:
        raise BlockError("a block is truncated or too large")
    return raw
