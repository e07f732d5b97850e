"""Charts of a message, for receivers that can show them. Texts are keys, because each receiver has its own language."""

from __future__ import annotations

from monitor.facts.base import Fact
from monitor.facts.text import Text


class ChartBar(Fact, frozen=True, kw_only=True):
    """A bar with a value for each part; `name` is None for what has no known owner."""

    name: str | None
    values: tuple[float, ...]


class BarChart(Fact, frozen=True, kw_only=True):
    """Horizontal bars, each divided into the same `parts`: keys `chart.part.<part>` of the catalogs."""

    title: Text
    parts: tuple[str, ...]
    bars: tuple[ChartBar, ...]


class DayRow(Fact, frozen=True, kw_only=True):
    """A share for each hour of a local day, such as `2026-01-31`; None where it is unknown."""

    day: str
    shares: tuple[float | None, ...]


class HourChart(Fact, frozen=True, kw_only=True):
    """Shares by day and hour."""

    title: Text
    days: tuple[DayRow, ...]


class MessageCharts(Fact, frozen=True, kw_only=True):
    """Charts in their order: bars, then hours."""

    bars: tuple[BarChart, ...] = ()
    hours: HourChart | None = None
