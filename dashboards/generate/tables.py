"""Preset of tables: the rows of several instant queries, joined by the labels that they have in common."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import NamedTuple

from grafana_foundation_sdk.builders import common
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.models import common as c
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue, FieldColorModeId

from dashboards.generate.links import Link, data_link
from dashboards.generate.panels import Localized, populate
from dashboards.generate.styles import COUNT, Style
from dashboards.generate.words import Words


class Column(NamedTuple):
    """A column: the values of a label, or of a query by its letter."""

    source: str
    title: str
    style: Style | None = None
    link: Link | None = None
    width: int | None = None


def table(
    key: str,
    exprs: Sequence[str],
    columns: Sequence[Column],
    width: int = 24,
    height: int = 9,
    hidden: Sequence[str] = (),
    sort_by: tuple[str, bool] | None = None,
) -> Localized:
    """Table of current values; `sort_by` is a column's title and whether the order is descending."""

    def build(words: Words) -> Table:
        panel = Table().cell_height(c.TableCellHeight.SM).show_header(True).footer(_no_footer())
        panel.align(c.FieldTextAlignment.AUTO).cell_options(c.TableAutoCellOptions()).filterable(True).inspect(False)
        populate(panel, key, [(expr, "") for expr in exprs], COUNT, (width, height), words, FieldColorModeId.THRESHOLDS)
        if len(exprs) > 1:
            panel.with_transformation(DataTransformerConfig("merge", options={}))
        panel.with_transformation(DataTransformerConfig("organize", options=_arranged(columns, hidden, exprs, words)))
        for column in columns:
            if properties := _properties(column, words):
                panel.override_by_name(words.terms[f"column.{column.title}"], properties)
        if sort_by is None:
            return panel.sort_by([])
        title, descending = sort_by
        return panel.sort_by(
            [common.TableSortByFieldState().display_name(words.terms[f"column.{title}"]).desc(descending)]
        )

    return build


def _no_footer() -> common.TableFooterOptions:
    return common.TableFooterOptions().show(False).reducer(["sum"]).count_rows(False)


def _arranged(
    columns: Sequence[Column], hidden: Sequence[str], exprs: Sequence[str], words: Words
) -> dict[str, object]:
    """Options of the transformation that orders, renames and hides fields."""
    value = "Value #{}" if len(exprs) > 1 else "Value"  # Grafana numbers the values of several queries
    fields = [value.format(column.source) if column.source in ascii_uppercase else column.source for column in columns]
    titles = [words.terms[f"column.{column.title}"] for column in columns]
    return {
        "excludeByName": dict.fromkeys(("Time", *hidden), True),
        "includeByName": {},
        "indexByName": {name: index for index, name in enumerate(fields)},
        "renameByName": dict(zip(fields, titles, strict=True)),
    }


def _properties(column: Column, words: Words) -> list[DynamicConfigValue]:
    """What differs from the table's defaults."""
    properties: dict[str, object] = {}
    if style := column.style:
        properties = {"unit": style.unit, "min": style.min, "max": style.max, "decimals": style.decimals}
        properties |= {"mappings": style.mappings(words) or None, "thresholds": style.thresholds().build()}
        properties["custom.cellOptions"] = style.cell()
    if column.link:
        properties["links"] = [data_link(column.link, words, "${__value.raw}").build()]
    properties["custom.width"] = column.width
    return [DynamicConfigValue(name, value) for name, value in properties.items() if value is not None]
