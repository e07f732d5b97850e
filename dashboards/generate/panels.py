"""Presets of panels. A preset returns a panel that is built once its language is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from string import ascii_uppercase
from typing import TypeVar

from grafana_foundation_sdk.builders import bargauge, common, prometheus, stat, statetimeline, statushistory, timeseries
from grafana_foundation_sdk.builders.dashboard import FieldColor
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models.dashboard import DataSourceRef, DynamicConfigValue, FieldColorModeId, Panel
from grafana_foundation_sdk.models.prometheus import PromQueryFormat, QueryEditorMode

from dashboards.generate.links import Link, data_link
from dashboards.generate.styles import COUNT, PALETTES, Style
from dashboards.generate.words import Words

Localized = Callable[[Words], Builder[Panel]]
# Expression and legend: `{{label}}` is a label of the series, `<term>` a term of the language.
Query = tuple[str, str]
P = TypeVar("P", bargauge.Panel, stat.Panel, statetimeline.Panel, statushistory.Panel, timeseries.Panel, Table)
PROMETHEUS = DataSourceRef("prometheus", "${datasource}")
_TERM = re.compile(r"<([a-z-]+)>")
_DASHES = [
    DynamicConfigValue("custom.lineStyle", c.LineStyle("dash", [8, 6])),
    DynamicConfigValue("custom.fillOpacity", 0),
    DynamicConfigValue("custom.lineWidth", 2),
]


def populate(
    panel: P,
    key: str,
    queries: Sequence[Query],
    style: Style,
    size: tuple[int, int],
    words: Words,
    mode: FieldColorModeId,
) -> P:
    """Fill in what all panels have in common: title, size, queries and style; `mode` colours the values."""
    title, description = words.panels[key]
    panel.title(title).description(description).datasource(PROMETHEUS).span(size[0]).height(size[1])
    panel.color_scheme(FieldColor().mode(mode))
    panel.thresholds(style.thresholds()).mappings(style.mappings(words)).overrides([])
    if style.unit is not None:
        panel.unit(style.unit)
    if style.decimals is not None:
        panel.decimals(style.decimals)
    if style.min is not None:
        panel.min(style.min)
    if style.max is not None:
        panel.max(style.max)
    instant = isinstance(panel, bargauge.Panel | stat.Panel | Table)
    for ref, (expr, legend) in zip(ascii_uppercase, queries, strict=False):
        text = _TERM.sub(lambda match: words.terms[f"legend.{match[1]}"], legend) or "__auto"
        target = prometheus.Dataquery().ref_id(ref).datasource(PROMETHEUS).expr(expr).legend_format(text)
        target.format(PromQueryFormat.TABLE if isinstance(panel, Table) else PromQueryFormat.TIME_SERIES)
        target.editor_mode(QueryEditorMode.CODE)
        panel.with_target(target.instant() if instant else target.range())
    return panel


def _named_series(panel: P, palette: str, words: Words) -> None:
    for name, colour in PALETTES[palette].items():
        fixed = FieldColor().mode(FieldColorModeId.FIXED).fixed_color(colour).build()
        shown = words.terms[f"{palette}.{name}"]
        panel.override_by_name(name, [DynamicConfigValue("color", fixed), DynamicConfigValue("displayName", shown)])


def figure(key: str, expr: str, style: Style = COUNT, width: int = 3, height: int = 4) -> Localized:
    """One current value."""

    def build(words: Words) -> stat.Panel:
        panel = stat.Panel().color_mode(c.BigValueColorMode.VALUE).graph_mode(c.BigValueGraphMode.NONE)
        panel.text_mode(c.BigValueTextMode.VALUE).justify_mode(c.BigValueJustifyMode.AUTO).wide_layout(True)
        panel.orientation(c.VizOrientation.AUTO).reduce_options(_last_value())
        return populate(panel, key, [(expr, "")], style, (width, height), words, FieldColorModeId.THRESHOLDS)

    return build


def _last_value() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).fields("").values(False)


def series(
    key: str,
    *queries: Query,
    style: Style = COUNT,
    width: int = 12,
    stacked: bool = False,
    bars: bool = False,
    palette: str | None = None,
    dashed: str = "",
    link: Link | None = None,
) -> Localized:
    """Time series; `dashed` lists the queries that are limits and not measurements."""
    legend = common.VizLegendOptions().show_legend(True).display_mode(c.LegendDisplayMode.TABLE)
    legend.placement(c.LegendPlacement.BOTTOM).calcs(["lastNotNull", "max"]).sort_by("Last *").sort_desc(True)
    stacking = common.StackingConfig().group("A").mode(c.StackingMode.NORMAL if stacked else c.StackingMode.NONE)

    def build(words: Words) -> timeseries.Panel:
        panel = timeseries.Panel().legend(legend).stacking(stacking).line_width(1).point_size(4).span_nulls(False)
        panel.tooltip(common.VizTooltipOptions().mode(c.TooltipDisplayMode.MULTI).sort(c.SortOrder.DESCENDING))
        panel.draw_style(c.GraphDrawStyle.BARS if bars else c.GraphDrawStyle.LINE)
        panel.fill_opacity(60 if stacked or bars else 8).show_points(c.VisibilityMode.NEVER)
        panel.line_interpolation(c.LineInterpolation.STEP_AFTER if style.is_count else c.LineInterpolation.LINEAR)
        populate(panel, key, queries, style, (width, 8), words, FieldColorModeId.PALETTE_CLASSIC)
        if palette:
            _named_series(panel, palette, words)
        for ref in dashed:
            panel.override_by_query(ref, _DASHES)
        return panel.data_links([data_link(link, words)] if link else [])

    return build


def bars(
    key: str,
    query: Query,
    style: Style = COUNT,
    width: int = 6,
    height: int = 8,
    palette: str | None = None,
    link: Link | None = None,
) -> Localized:
    """One bar per series with its current value."""

    def build(words: Words) -> bargauge.Panel:
        panel = bargauge.Panel().display_mode(c.BarGaugeDisplayMode.BASIC).value_mode(c.BarGaugeValueMode.COLOR)
        panel.orientation(c.VizOrientation.HORIZONTAL).reduce_options(_last_value()).show_unfilled(True)
        panel.name_placement(c.BarGaugeNamePlacement.AUTO).sizing(c.BarGaugeSizing.AUTO)
        panel.min_viz_width(8).min_viz_height(14).max_viz_height(36)
        populate(panel, key, [query], style, (width, height), words, FieldColorModeId.THRESHOLDS)
        if palette:
            _named_series(panel, palette, words)
        return panel.data_links([data_link(link, words)] if link else [])

    return build


def timeline(key: str, query: Query, style: Style, width: int = 12, height: int = 8) -> Localized:
    """One lane per series, coloured by state."""

    def build(words: Words) -> statetimeline.Panel:
        panel = statetimeline.Panel().fill_opacity(85).line_width(0).row_height(0.9).per_page(24).merge_values(True)
        panel.align_value(c.TimelineValueAlignment.LEFT).show_value(c.VisibilityMode.AUTO)
        panel.legend(_listed()).tooltip(_single())
        return populate(panel, key, [query], style, (width, height), words, FieldColorModeId.THRESHOLDS)

    return build


def heat_map(key: str, query: Query, style: Style, columns: int, width: int = 24, height: int = 10) -> Localized:
    """One lane per series and one cell per interval, bluer for higher values."""

    def build(words: Words) -> statushistory.Panel:
        panel = statushistory.Panel().fill_opacity(100).line_width(0).row_height(0.9).col_width(1).per_page(24)
        panel.show_value(c.VisibilityMode.NEVER).max_data_points(columns).legend(_listed()).tooltip(_single())
        return populate(panel, key, [query], style, (width, height), words, FieldColorModeId.CONTINUOUS_BLUES)

    return build


def _listed() -> common.VizLegendOptions:
    legend = common.VizLegendOptions().show_legend(True).display_mode(c.LegendDisplayMode.LIST)
    return legend.placement(c.LegendPlacement.BOTTOM).calcs([])


def _single() -> common.VizTooltipOptions:
    return common.VizTooltipOptions().mode(c.TooltipDisplayMode.SINGLE).sort(c.SortOrder.NONE)
