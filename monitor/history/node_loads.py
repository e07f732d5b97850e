"""Utilisation of all nodes in one hour, stored together for the heat map: one byte per node and point.

Blocks are stored by node; reading those of a thousand nodes over a week would take seconds.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monitor.history.blocks import MAX_LEVEL, BlockError, Layout, LayoutPart, inflated
from monitor.history.model import (
    COARSE_POINTS,
    COARSE_SECONDS,
    ENCODINGS,
    HOUR_SECONDS,
    MINUTE_SECONDS,
    UNKNOWN_CODE,
    HistoryMetric,
    HistorySubject,
)

NODE_LOADS_GROUP = "heatmap"
UNKNOWN_LOAD_CODE = 0xFF
_MAX_LOAD_CODE = UNKNOWN_LOAD_CODE - 1


@dataclass(frozen=True)
class NodeLoads:
    """Utilisation of nodes from `start` on, point by point; within a point by name, in natural order."""

    start: int
    point_seconds: int
    names: tuple[str, ...]
    codes: bytes

    @property
    def point_count(self) -> int:
        return HOUR_SECONDS // self.point_seconds

    def by(self, point_seconds: int) -> NodeLoads:
        """The same with longer points."""
        width, merged = len(self.names), point_seconds // self.point_seconds
        columns = [self.codes[first : first + width] for first in range(0, len(self.codes), width)] if width else []
        groups = (columns[first : first + merged] for first in range(0, len(columns), merged))
        codes = b"".join(bytes(map(_mean_byte, zip(*group, strict=True))) for group in groups)
        return NodeLoads(self.start, point_seconds, self.names, codes)

    def layout(self) -> Layout:
        return (LayoutPart(HistorySubject.NODE.value, (HistoryMetric.UTILIZATION.value,), self.names),)

    def packed(self) -> bytes:
        """All points by the minute."""
        return zlib.compress(self.codes, MAX_LEVEL)

    def packed_coarse(self) -> bytes:
        """Points of ten minutes, then that of the hour."""
        return zlib.compress(self.by(COARSE_SECONDS).codes + self.by(HOUR_SECONDS).codes, MAX_LEVEL)


def unpacked_loads(start: int, layout: Layout, body: bytes) -> NodeLoads:
    """Loads by the minute. Raise BlockError."""
    return _checked(start, MINUTE_SECONDS, layout, inflated(body))


def unpacked_coarse_loads(start: int, point_seconds: int, layout: Layout, body: bytes) -> NodeLoads:
    """Loads by ten minutes or by the hour. Raise BlockError."""
    codes = inflated(body)
    width = len(codes) // (COARSE_POINTS + 1)
    return _checked(start, point_seconds, layout, codes[-width:] if point_seconds == HOUR_SECONDS else codes[:-width])


def _checked(start: int, point_seconds: int, layout: Layout, codes: bytes) -> NodeLoads:
    loads = NodeLoads(start, point_seconds, layout[0].names if layout else (), codes)
    if len(codes) != loads.point_count * len(loads.names):
        raise BlockError("the loads of an hour do not match its nodes")
    return loads


def load_bytes(codes: Iterable[int]) -> bytes:
    """Codes of the utilisation, a byte each."""
    return bytes([UNKNOWN_LOAD_CODE if code == UNKNOWN_CODE else min(code, _MAX_LOAD_CODE) for code in codes])


def load_ratio(byte_sum: int, count: int) -> float:
    """Mean utilisation of `count` bytes."""
    return ENCODINGS[HistoryMetric.UTILIZATION].decode(1) * byte_sum / count


def _mean_byte(codes: Sequence[int]) -> int:
    known = [code for code in codes if code != UNKNOWN_LOAD_CODE]
    return (2 * sum(known) + len(known)) // (2 * len(known)) if known else UNKNOWN_LOAD_CODE
