"""Metrics of the daemon as Prometheus text; one module per area, each with its tables.

Conventions as in `monitor.agent.metrics`; in addition, a training job is in the label `workload`, because Prometheus
sets `job` itself. An area that fails is missing from the scrape and counted; the others are not affected.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import Metric

from monitor.base.metrics import MetricName, MetricTable, text_of, texts_of
from monitor.daemon.metrics import alerts, cleanup, cluster, findings, own, pods

log = logging.getLogger(__name__)

FAILURES: MetricTable[int] = MetricTable(
    ("area",),
    counters=(("gpuwarden_exposition_failures", "Scrapes without the area, because it failed.", lambda count: count),),
)
MODULES = (own, cluster, findings, pods, alerts, cleanup)


@dataclass(frozen=True)
class MetricArea:
    """A part of the scrape. If `read` returns the same object as before, its text is reused."""

    name: str
    read: Callable[[], Any]
    families: Callable[[Any], Iterable[Metric | bytes]]


class DaemonMetrics:
    """Renders the areas, each only when its values have changed. Thread-safe."""

    def __init__(self, areas: Sequence[MetricArea]) -> None:
        self._areas = tuple(areas)
        self._failures = Counter({area.name: 0 for area in areas})
        self._rendered: dict[str, tuple[Any, Sequence[bytes]]] = {}
        self._lock = threading.Lock()  # concurrent scrapes share the rendered text

    def render(self) -> bytes:
        with self._lock:
            texts = [text for area in self._areas for text in self._texts(area)]
            failures = text_of(FAILURES.families(((name,), count) for name, count in self._failures.items()))
        return b"".join((*texts, failures))

    def _texts(self, area: MetricArea) -> Sequence[bytes]:
        try:
            values = area.read()
            before = self._rendered.get(area.name)
            if before is None or before[0] is not values:
                before = (values, tuple(texts_of(area.families(values))))
                self._rendered[area.name] = before
            return before[1]
        except Exception:  # one odd value must not hide the other areas
            log.exception("cannot render the metrics of %s", area.name)
            self._failures[area.name] += 1
            return ()


def catalogue() -> tuple[MetricName, ...]:
    """Every metric that the daemon itself defines, in the order of its areas."""
    tables: tuple[MetricTable[Any], ...] = tuple(table for module in MODULES for table in module.TABLES)
    return tuple(name for table in (*tables, FAILURES) for name in table.names())
