"""Makes the dashboards: `python -m dashboards.generate`. Pure but for `__main__`, which writes the files.

`cluster`, `gpus`, `storage` and `monitor` say what is on each dashboard, free of any language; `words` says it in each
language; `render` turns both into Grafana's JSON. PromQL that is needed more than once is in `promql`.
"""

from __future__ import annotations

from typing import Any

from dashboards.generate import cluster, gpus, monitor, storage
from dashboards.generate.frame import document
from dashboards.generate.words import LANGUAGES, words_of

DASHBOARDS = (cluster.DASHBOARD, gpus.DASHBOARD, storage.DASHBOARD, monitor.DASHBOARD)


def documents() -> dict[tuple[str, str], dict[str, Any]]:
    """Return every dashboard's JSON, by language and file name."""
    return {
        (lang, f"{dashboard.name}.json"): document(dashboard, words_of(lang))
        for lang in LANGUAGES
        for dashboard in DASHBOARDS
    }
