"""Panels -> Grafana's JSON."""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import Any

from dashboards.generate.looks import LOOKS, SERIES
from dashboards.generate.model import Column, Link, Panel, Query
from dashboards.generate.uids import uid
from dashboards.generate.words import Words

OLDEST = "10.4.0"  # the Grafana whose options these are; without it, panels are taken for much older ones
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Where a value leads: the dashboard, the variable it chooses there, and the label it is taken from.
LINKS: dict[Link, tuple[str, str, str]] = {
    "node-gpus": ("gpus", "node", "node"),
    "node-storage": ("storage", "node", "node"),
    "user": ("gpus", "user", "user"),
    "queue": ("gpus", "queue", "queue"),
    "namespace": ("gpus", "namespace", "namespace"),
}
_COLOURED = ("state", "severity", "ready", "schedulable", "silent", "trouble", "up", "held", "noted")
_GAUGES = ("share", "share-disk", "share-memory", "share-shm", "share-io")
_WORD = re.compile(r"<([a-z-]+)>")


def panel_json(panel: Panel, words: Words) -> dict[str, Any]:
    """Given a panel and a language, return Grafana's JSON, without its place and its number."""
    title, about = words.panels[panel.key]
    build = {
        "timeseries": _timeseries, "stat": _stat, "bargauge": _bargauge, "state-timeline": _timeline, "table": _table
    }[panel.kind]  # fmt: skip
    return {
        "type": panel.kind,
        "title": title,
        "description": about,
        "pluginVersion": OLDEST,
        "datasource": DATASOURCE,
        **build(panel, words),
        "targets": [_target(panel, letter, query, words) for letter, query in _lettered(panel)],
    }


def _lettered(panel: Panel) -> list[tuple[str, Query]]:
    return [(ascii_uppercase[index], query) for index, query in enumerate(panel.queries)]


def _target(panel: Panel, letter: str, query: Query, words: Words) -> dict[str, Any]:
    instant = panel.kind in ("stat", "table", "bargauge")
    legend = _WORD.sub(lambda match: words.said(f"legend.{match[1]}"), query.legend)
    return {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": query.expr,
        "format": "table" if panel.kind == "table" else "time_series",
        "instant": instant,
        "legendFormat": legend or "__auto",
        "range": not instant,
        "refId": letter,
    }


def _link(link: Link, words: Words, value: str) -> dict[str, Any]:
    name, variable, _ = LINKS[link]
    target = f"/d/{uid(name, words.lang)}?var-datasource=${{datasource}}&var-{variable}={value}&${{__url_time_range}}"
    return {"targetBlank": False, "title": words.said(f"link.{link}"), "url": target}


def _defaults(panel: Panel, words: Words, colour: str, custom: dict[str, Any]) -> dict[str, Any]:
    """What holds for every value of a panel."""
    links = [_link(panel.link, words, f"${{__field.labels.{LINKS[panel.link][2]}}}")] if panel.link else []
    return {
        "color": {"mode": colour},
        **({"custom": custom} if custom else {}),
        "links": links,
        "mappings": [],
        **LOOKS[panel.look](words),
    }


def _named_series(panel: Panel, words: Words) -> list[dict[str, Any]]:
    """Series that are known by name: their colours, and their names in this language."""
    overrides = []
    for name, colour in SERIES.get(panel.series_colours, {}).items():
        say = {"state": words.state, "severity": words.severity}.get(panel.series_colours)
        shown = say(name) if say else words.said(f"outcome.{name}")
        fixed: dict[str, Any] = {"id": "color", "value": {"fixedColor": colour, "mode": "fixed"}}
        overrides.append(_override("byName", name, [fixed, {"id": "displayName", "value": shown}]))
    return overrides


def _override(matcher: str, options: str, properties: list[dict[str, Any]]) -> dict[str, Any]:
    return {"matcher": {"id": matcher, "options": options}, "properties": properties}


def _timeseries(panel: Panel, words: Words) -> dict[str, Any]:
    custom = {
        "axisPlacement": "auto",
        "drawStyle": "bars" if panel.bars else "line",
        "fillOpacity": 60 if panel.stacked or panel.bars else 8,
        "lineInterpolation": "stepAfter" if panel.look in ("number", "tolerated", "never") else "linear",
        "lineWidth": 1,
        "pointSize": 4,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if panel.stacked else "none"},
        "thresholdsStyle": {"mode": "off"},
    }
    dashes: list[dict[str, Any]] = [
        {"id": "custom.lineStyle", "value": {"dash": [8, 6], "fill": "dash"}},
        {"id": "custom.fillOpacity", "value": 0},
        {"id": "custom.lineWidth", "value": 2},
    ]
    overrides = _named_series(panel, words) + [_override("byFrameRefID", letter, dashes) for letter in panel.dashed]
    return {
        "fieldConfig": {"defaults": _defaults(panel, words, "palette-classic", custom), "overrides": overrides},
        "options": {
            "legend": {
                "calcs": ["lastNotNull", "max"],
                "displayMode": "table",
                "placement": "bottom",
                "showLegend": True,
                "sortBy": "Last *",
                "sortDesc": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
            **panel.options,
        },
    }


def _reduced(values: bool) -> dict[str, Any]:
    return {"calcs": ["lastNotNull"], "fields": "", "values": values}


def _stat(panel: Panel, words: Words) -> dict[str, Any]:
    return {
        "fieldConfig": {"defaults": _defaults(panel, words, "thresholds", {}), "overrides": []},
        "options": {
            "colorMode": "value",
            "graphMode": "none",
            "justifyMode": "auto",
            "orientation": "auto",
            "reduceOptions": _reduced(values=False),
            "textMode": "value",
            "wideLayout": True,
            **panel.options,
        },
    }


def _bargauge(panel: Panel, words: Words) -> dict[str, Any]:
    return {
        "fieldConfig": {
            "defaults": _defaults(panel, words, "thresholds", {}),
            "overrides": _named_series(panel, words),
        },
        "options": {
            "displayMode": "basic",
            "maxVizHeight": 36,
            "minVizHeight": 14,
            "minVizWidth": 8,
            "namePlacement": "auto",
            "orientation": "horizontal",
            "reduceOptions": _reduced(values=False),
            "showUnfilled": True,
            "sizing": "auto",
            "valueMode": "color",
            **panel.options,
        },
    }


def _timeline(panel: Panel, words: Words) -> dict[str, Any]:
    custom = {"fillOpacity": 85, "lineWidth": 0, "spanNulls": False}
    return {
        "fieldConfig": {"defaults": _defaults(panel, words, "thresholds", custom), "overrides": []},
        "options": {
            "alignValue": "left",
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "mergeValues": True,
            "perPage": 24,
            "rowHeight": 0.9,
            "showValue": "auto",
            "tooltip": {"mode": "single", "sort": "none"},
            **panel.options,
        },
    }


def _table(panel: Panel, words: Words) -> dict[str, Any]:
    many = len(panel.queries) > 1
    names = {column.source: _field(column.source, many) for column in panel.columns}
    titles = {names[column.source]: words.said(f"column.{column.word}") for column in panel.columns}
    arranged = {
        "excludeByName": dict.fromkeys(("Time", *panel.hidden), True),
        "includeByName": {},
        "indexByName": {name: index for index, name in enumerate(titles)},
        "renameByName": titles,
    }
    merge = [{"id": "merge", "options": {}}] if many else []
    sort_by = []
    if panel.sort_by is not None:
        sort_by = [{"desc": panel.sort_by[1], "displayName": words.said(f"column.{panel.sort_by[0]}")}]
    custom = {"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True, "inspect": False}
    return {
        "fieldConfig": {
            "defaults": {"color": {"mode": "thresholds"}, "custom": custom, "mappings": [], **LOOKS["number"](words)},
            "overrides": [each for column in panel.columns if (each := _column(column, words))],
        },
        "options": {
            "cellHeight": "sm",
            "footer": {"countRows": False, "fields": "", "reducer": ["sum"], "show": False},
            "showHeader": True,
            "sortBy": sort_by,
            **panel.options,
        },
        "transformations": [*merge, {"id": "organize", "options": arranged}],
    }


def _field(source: str, many: bool) -> str:
    """Given a column's source, return the field's name: values are numbered only when there are several queries."""
    if source not in ascii_uppercase:
        return source
    return f"Value #{source}" if many else "Value"


def _column(column: Column, words: Words) -> dict[str, Any] | None:
    look = LOOKS[column.look](words) if column.look else {}
    properties = [{"id": name, "value": value} for name, value in look.items()]
    if column.look in _COLOURED:
        properties.append({"id": "custom.cellOptions", "value": {"mode": "basic", "type": "color-background"}})
    if column.look in _GAUGES:
        gauge = {"mode": "basic", "type": "gauge", "valueDisplayMode": "text"}
        properties.append({"id": "custom.cellOptions", "value": gauge})
    elif "thresholds" in look and len(look["thresholds"]["steps"]) > 1:
        properties.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
    if column.link is not None:
        properties.append({"id": "links", "value": [_link(column.link, words, "${__value.raw}")]})
    if column.width is not None:
        properties.append({"id": "custom.width", "value": column.width})
    return _override("byName", words.said(f"column.{column.word}"), properties) if properties else None
