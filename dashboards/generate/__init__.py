"""Builds the dashboards with Grafana's Foundation SDK: `python -m dashboards.generate`.

`cluster`, `gpus` with `jobs`, `storage` with `upkeep`, and `monitor` define the panels independently of a language,
with the presets of `panels` and `tables`; `words` holds the text of each language, `promql` shared expressions.
"""

from __future__ import annotations

import json
from typing import Any

from dashboards.generate import cluster, gpus, monitor, storage
from dashboards.generate.board import document
from dashboards.generate.words import LANGUAGES, words_of

DASHBOARDS = (cluster.DASHBOARD, gpus.DASHBOARD, storage.DASHBOARD, monitor.DASHBOARD)


def documents() -> dict[tuple[str, str], dict[str, Any]]:
    """JSON of every dashboard, by language and file name."""
    return {
        (lang, f"{dashboard.name}.json"): document(dashboard, words_of(lang))
        for lang in LANGUAGES
        for dashboard in DASHBOARDS
    }


def text(document: dict[str, Any]) -> str:
    """Content of a dashboard's file."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
