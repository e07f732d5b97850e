"""Every metric that a query may name, with its labels and whether it is a counter."""

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

OF_A_TARGET = frozenset({"job", "instance"})
# What Prometheus itself writes for each target.
OF_A_SCRAPE = ("up", "scrape_duration_seconds", "scrape_samples_scraped")


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
    return {name: Known(frozenset(found) | OF_A_TARGET, name in counters) for name, found in labels.items()}


@cache
def metrics() -> dict[str, Known]:
    """Return what agents, the daemon and Prometheus have, by the names of samples."""
    well = MountFact(path="/mnt/a", state="ok", since=AT, latency_seconds=0.1)
    snapshot = msgspec.structs.replace(full_snapshot(), mounts=(well, *(full_snapshot().mounts or ())))
    agent = _families(list(text_string_to_metric_families(AgentMetrics().render(snapshot).decode())))
    daemon = {each.name: Known(frozenset(each.labels) | OF_A_TARGET, each.kind == "counter") for each in catalogue()}
    process = _families(list(ProcessCollector(registry=None).collect()))
    return agent | daemon | process | {name: Known(OF_A_TARGET) for name in OF_A_SCRAPE}
