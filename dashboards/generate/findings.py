"""Table of current findings, shared by several dashboards."""

from __future__ import annotations

from dashboards.generate import styles
from dashboards.generate.panels import Localized
from dashboards.generate.promql import one
from dashboards.generate.tables import Column, table

LABELS = (
    "severity", "alertname", "cause", "node", "gpu", "namespace", "pod", "user", "queue", "mount", "image", "service",
    "condition",
)  # fmt: skip


def findings(key: str, selector: str) -> Localized:
    """Matching findings with their start, 0 where unknown: a single query, so that rows need no join."""
    since = one(f"gpuwarden_finding_since_seconds{{{selector}}}", *LABELS)
    present = one(f"gpuwarden_finding{{{selector}}}", *LABELS)
    columns = [
        Column("severity", "severity", styles.SEVERITY, width=90),
        Column("alertname", "finding"),
        Column("cause", "cause"),
        Column("A", "since", styles.SINCE, width=140),
        Column("node", "node", link="node-gpus"),
        Column("gpu", "gpu", width=60),
        Column("namespace", "namespace", link="namespace"),
        Column("pod", "pod"),
        Column("user", "user", link="user"),
        Column("queue", "queue", link="queue"),
        Column("mount", "mount"),
        Column("image", "image"),
        Column("service", "service"),
        Column("condition", "condition"),
    ]
    return table(key, [f"1000 * {since} or 0 * {present}"], columns, height=10, sort_by=("severity", False))
