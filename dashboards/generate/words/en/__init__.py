"""English."""

from __future__ import annotations

from dashboards.generate.words.en import cluster, gpus, monitor, storage, terms

PANELS = cluster.PANELS | gpus.PANELS | storage.PANELS | monitor.PANELS
ROWS = cluster.ROWS | gpus.ROWS | storage.ROWS | monitor.ROWS
DASHBOARDS = {
    "cluster": cluster.DASHBOARD,
    "gpus": gpus.DASHBOARD,
    "storage": storage.DASHBOARD,
    "monitor": monitor.DASHBOARD,
}
TERMS = terms.TERMS
