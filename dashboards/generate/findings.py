"""The table of what is wrong now, which more than one dashboard shows."""

from __future__ import annotations

from dashboards.generate.model import Column, Panel
from dashboards.generate.panels import table
from dashboards.generate.promql import one

LABELS = (
    "severity", "alertname", "cause", "node", "gpu", "namespace", "pod", "user", "queue", "mount", "image", "service"
)  # fmt: skip


def findings(key: str, selector: str) -> Panel:
    """Return the findings that match, with since when. One query: a finding whose start is not known says so by 0."""
    since = one(f"gpuwarden_finding_since_seconds{{{selector}}}", *LABELS)
    there = one(f"gpuwarden_finding{{{selector}}}", *LABELS)
    columns = [
        Column("severity", "severity", "severity", width=90),
        Column("alertname", "finding"),
        Column("cause", "cause"),
        Column("A", "since", "since", width=140),
        Column("node", "node", link="node-gpus"),
        Column("gpu", "gpu", width=60),
        Column("namespace", "namespace", link="namespace"),
        Column("pod", "pod"),
        Column("user", "user", link="user"),
        Column("queue", "queue", link="queue"),
        Column("mount", "mount"),
        Column("image", "image"),
        Column("service", "service"),
    ]
    return table(key, [f"1000 * {since} or 0 * {there}"], columns, height=10, sort_by=("severity", False))
