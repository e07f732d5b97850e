"""Short ways to write panels down, with the sizes that they have unless said otherwise."""

from __future__ import annotations

from typing import Any

from dashboards.generate.model import Column, Panel, Query


def queries(*pairs: str | tuple[str, str]) -> tuple[Query, ...]:
    """Given expressions, or pairs of expression and legend, return queries."""
    return tuple(Query(pair) if isinstance(pair, str) else Query(*pair) for pair in pairs)


def stat(key: str, expr: str, look: str = "number", width: int = 3, height: int = 4, **more: Any) -> Panel:
    """One figure. `more` are further fields of the panel, here and below."""
    return Panel(key, "stat", queries(expr), width, height, look=look, **more)


def series(key: str, *pairs: tuple[str, str], look: str = "number", width: int = 12, **more: Any) -> Panel:
    """Lines over time."""
    return Panel(key, "timeseries", queries(*pairs), width, 8, look=look, **more)


def bars(
    key: str, *pairs: tuple[str, str], look: str = "number", width: int = 6, height: int = 8, **more: Any
) -> Panel:
    """One bar for each series, as it is now."""
    return Panel(key, "bargauge", queries(*pairs), width, height, look=look, **more)


def timeline(key: str, expr: str, legend: str, look: str, width: int = 12, height: int = 8, **more: Any) -> Panel:
    """One lane for each series, coloured by its state."""
    return Panel(key, "state-timeline", queries((expr, legend)), width, height, look=look, **more)


def table(key: str, exprs: list[str], columns: list[Column], width: int = 24, height: int = 9, **more: Any) -> Panel:
    """A table as of now: the queries' rows are joined by the labels that they have in common."""
    return Panel(key, "table", queries(*exprs), width, height, columns=columns, **more)
