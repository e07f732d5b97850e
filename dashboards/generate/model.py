"""What a dashboard is made of, without a language and without Grafana's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["timeseries", "stat", "table", "bargauge", "state-timeline"]
Link = Literal["node-gpus", "node-storage", "user", "queue", "namespace"]


@dataclass(frozen=True)
class Query:
    """One expression. `<word>` in the legend is a word of the language, `{{label}}` a label of the series."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table: a label, or a query's value by its letter. `look` is a name of `looks.LOOKS`."""

    source: str
    word: str
    look: str = ""
    link: Link | None = None
    width: int | None = None


@dataclass(frozen=True)
class Panel:
    """One panel. `look` says how its values are shown, `options` are Grafana's own where a look is not enough."""

    key: str
    kind: Kind
    queries: Sequence[Query]
    width: int
    height: int
    look: str = "number"
    stacked: bool = False
    bars: bool = False
    columns: Sequence[Column] = ()
    hidden: Sequence[str] = ()
    sort_by: tuple[str, bool] | None = None  # the word of a column, and whether the largest comes first
    series_colours: str = ""  # a name of `looks.SERIES`
    dashed: Sequence[str] = ()  # letters of the queries that are limits and not measurements
    link: Link | None = None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A heading with the panels under it."""

    key: str
    panels: Sequence[Panel]


@dataclass(frozen=True)
class Variable:
    """A choice at the top of a dashboard: the values of a label."""

    name: str
    query: str


@dataclass(frozen=True)
class Dashboard:
    """A dashboard: `name` is that of its file, and with a prefix its uid."""

    name: str
    variables: Sequence[Variable]
    rows: Sequence[Row]
