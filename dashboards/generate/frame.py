"""A dashboard around its panels: variables, links, annotations, and where each panel goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dashboards.generate.looks import CRITICAL
from dashboards.generate.model import Dashboard, Panel, Row, Variable
from dashboards.generate.render import DATASOURCE, panel_json
from dashboards.generate.uids import TAG, uid
from dashboards.generate.words import LANGUAGES, Words

SCHEMA_VERSION = 39
COLUMNS = 24


def document(dashboard: Dashboard, words: Words) -> dict[str, Any]:
    """Given a dashboard and a language, return Grafana's JSON."""
    title, about = words.dashboards[dashboard.name]
    return {
        "annotations": {"list": [_built_in(), _critical_findings(words)]},
        "description": about,
        "editable": True,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "id": None,
        "links": _links(dashboard, words),
        "panels": list(_placed(dashboard.rows, words)),
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "tags": [TAG, words.lang],
        "templating": {"list": [_datasource(words), *(_variable(each, words) for each in dashboard.variables)]},
        "time": {"from": "now-6h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "title": title,
        "uid": uid(dashboard.name, words.lang),
        "version": 1,
        "weekStart": "",
    }


def _placed(rows: Iterable[Row], words: Words) -> Iterable[dict[str, Any]]:
    """Yield headings and panels from left to right and from top to bottom, numbered in that order."""
    number, y = 0, 0
    for row in rows:
        number += 1
        yield {
            "collapsed": False,
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
            "id": number,
            "panels": [],
            "title": words.rows[row.key],
            "type": "row",
        }
        y += 1
        for line in _lines(row.panels):
            x = 0
            for panel in line:
                number += 1
                place = {"h": panel.height, "w": panel.width, "x": x, "y": y}
                yield {**panel_json(panel, words), "gridPos": place, "id": number}
                x += panel.width
            y += max(panel.height for panel in line)


def _lines(panels: Iterable[Panel]) -> list[list[Panel]]:
    lines: list[list[Panel]] = []
    for panel in panels:
        if not lines or sum(each.width for each in lines[-1]) + panel.width > COLUMNS:
            lines.append([])
        lines[-1].append(panel)
    return lines


def _datasource(words: Words) -> dict[str, Any]:
    return {
        "current": {},
        "hide": 0,
        "includeAll": False,
        "label": words.said("var.datasource"),
        "multi": False,
        "name": "datasource",
        "options": [],
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
        "type": "datasource",
    }


def _variable(variable: Variable, words: Words) -> dict[str, Any]:
    return {
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "datasource": DATASOURCE,
        "definition": variable.query,
        "hide": 0,
        "includeAll": True,
        "label": words.said(f"var.{variable.name}"),
        "multi": True,
        "name": variable.name,
        "options": [],
        "query": {"qryType": 1, "query": variable.query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "refresh": 2,
        "regex": "",
        "skipUrlSync": False,
        "sort": 7,
        "type": "query",
    }


def _links(dashboard: Dashboard, words: Words) -> list[dict[str, Any]]:
    """The other dashboards of this language, and this one in the other languages."""
    common = {"asDropdown": False, "icon": "external link", "includeVars": True, "keepTime": True, "targetBlank": False}
    others = {**common, "tags": [TAG, words.lang], "title": "gpuwarden", "tooltip": "", "type": "dashboards", "url": ""}
    twins = [
        {
            **common,
            "tags": [],
            "title": words.said(f"language.{lang}"),
            "tooltip": "",
            "type": "link",
            "url": f"/d/{uid(dashboard.name, lang)}",
        }
        for lang in LANGUAGES
        if lang != words.lang
    ]
    return [others, *twins]


def _built_in() -> dict[str, Any]:
    return {
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "hide": True,
        "iconColor": "rgba(0, 211, 255, 1)",
        "name": "Annotations & Alerts",
        "type": "dashboard",
    }


def _critical_findings(words: Words) -> dict[str, Any]:
    """Marks when something critical was found. What another finding explains would only repeat it."""
    labels = "alertname, cause, node, gpu, namespace, pod, service"
    return {
        "datasource": DATASOURCE,
        "enable": True,
        "expr": f'max by ({labels}) (gpuwarden_finding{{severity="critical",explained="false"}})',
        "hide": False,
        "iconColor": CRITICAL,
        "name": words.said("annotation.critical"),
        "step": "60s",
        "tagKeys": "cause,namespace,pod",
        "textFormat": "{{node}} {{gpu}} {{service}} {{namespace}} {{pod}}",
        "titleFormat": "{{alertname}}",
        "useValueForTime": False,
    }
