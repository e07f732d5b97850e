"""Metrics that a query may name, with their labels and whether they are counters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import msgspec
from prometheus_client import ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from monitor.agent.metrics import AgentMetrics
from monitor.daemon.metrics import catalogue
from monitor.facts import MountFact
from tests.support.snapshots import AT, full_snapshot

TARGET_LABELS = frozenset({"job", "instance"})
# Metrics that Prometheus adds for each target.
SCRAPE_METRICS = ("up", "scrape_duration_seconds", "scrape_samples_scraped")


@dataclass(frozen=True)
class Known:
    labels: frozenset[str]
    counter: bool = False


def _families(families: list[Metric]) -> dict[str, Known]:
    labels: dict[str, set[str]] = {}
    counters = set()
    for family in families:
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
            if family.type == "counter":
                counters.add(sample.name)
    return {name: Known(frozenset(found) | TARGET_LABELS, name in counters) for name, found in labels.items()}


@cache
def metrics() -> dict[str, Known]:
    """Metrics of agents, daemon and Prometheus, by name of the sample."""
    well = MountFact(path="/mnt/a", state="ok", since=AT, latency_seconds=0.1)
    snapshot = msgspec.structs.replace(full_snapshot(), mounts=(well, *(full_snapshot().mounts or ())))
    agent = _families(list(text_string_to_metric_families(AgentMetrics().render(snapshot).decode())))
    daemon = {each.name: Known(frozenset(each.labels) | TARGET_LABELS, each.kind == "counter") for each in catalogue()}
    process = _families(list(ProcessCollector(registry=None).collect()))
    return agent | daemon | process | {name: Known(TARGET_LABELS) for name in SCRAPE_METRICS}
