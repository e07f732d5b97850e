"""Metrics of cleanup."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import Metric

from monitor.base.metrics import MetricTable
from monitor.cleanup.totals import CleanupTotals
from monitor.daemon.metrics.label_values import short

RUNS: MetricTable[int] = MetricTable(
    ("policy", "outcome"),
    counters=(("gpuwarden_cleanup_runs", "Runs by outcome since the start of the process.", lambda n: n),),
)
ITEMS: MetricTable[int] = MetricTable(
    ("policy", "outcome"),
    counters=(("gpuwarden_cleanup_items", "Items by outcome since the start of the process.", lambda n: n),),
)
FREED: MetricTable[int] = MetricTable(
    ("policy",),
    counters=(("gpuwarden_cleanup_freed_bytes", "Bytes freed by completed runs since the start.", lambda n: n),),
)
LAST: MetricTable[float] = MetricTable(
    ("policy",), (("gpuwarden_cleanup_last_run_seconds", "Start of the last run (Unix time).", lambda at: at),)
)
TABLES = (RUNS, ITEMS, FREED, LAST)


def families(totals: CleanupTotals) -> Iterable[Metric]:
    """Runs, items and bytes by policy."""
    yield from RUNS.families(((short(policy), short(outcome)), n) for (policy, outcome), n in totals.runs.items())
    yield from ITEMS.families(((short(policy), short(outcome)), n) for (policy, outcome), n in totals.items.items())
    yield from FREED.families(((short(policy),), freed) for policy, freed in totals.freed_bytes.items())
    yield from LAST.families(((short(policy),), at) for policy, at in totals.last_run.items())
