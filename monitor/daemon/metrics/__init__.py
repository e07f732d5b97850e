"""What the daemon knows -> Prometheus text. Pure: who gives the values reads the clock, the files and the cluster.

One file an area, each with its tables. The conventions are those of `monitor.agent.metrics`, with one more: a training
job is in the label `workload`, because `job` is Prometheus's own. An area that cannot be read or rendered costs the
scrape nothing else, and is counted.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import Metric

from monitor.base.metrics import MetricName, MetricTable, text_of
from monitor.daemon.metrics import alerts, cleanup, cluster, findings, own, pods

log = logging.getLogger(__name__)

FAILURES: MetricTable[int] = MetricTable(
    ("area",),
    counters=(("gpuwarden_exposition_failures", "Scrapes from which an area is missing.", lambda count: count),),
)
MODULES = (own, cluster, findings, pods, alerts, cleanup)


@dataclass(frozen=True)
class MetricArea:
    """A part of the scrape: what it is called, who gives its values, and what becomes of them.

    `read` may return what it returned before: the same object means the same text.
    """

    name: str
    read: Callable[[], Any]
    families: Callable[[Any], Iterable[Metric]]


class DaemonMetrics:
    """Renders the areas, each only when its values have changed. For use from any thread."""

    def __init__(self, areas: Sequence[MetricArea]) -> None:
        self._areas = tuple(areas)
        self._failures = Counter({area.name: 0 for area in areas})
        self._rendered: dict[str, tuple[Any, bytes]] = {}
        self._lock = threading.Lock()  # two who ask at once wait for one answer instead of making two

    def render(self) -> bytes:
        """Return everything as Prometheus text."""
        with self._lock:
            texts = [self._text(area) for area in self._areas]
            failures = text_of(FAILURES.families(((name,), count) for name, count in self._failures.items()))
        return b"".join((*texts, failures))

    def _text(self, area: MetricArea) -> bytes:
        try:
            values = area.read()
            before = self._rendered.get(area.name)
            if before is None or before[0] is not values:
                before = (values, text_of(area.families(values)))
                self._rendered[area.name] = before
            return before[1]
        except Exception:  # whatever one odd value provokes, the other areas are still to be seen
            log.exception("cannot render the metrics of %s", area.name)
            self._failures[area.name] += 1
            return b""


def catalogue() -> tuple[MetricName, ...]:
    """Return every metric of our own that the daemon may expose, by area and in their order."""
    tables: tuple[MetricTable[Any], ...] = tuple(table for module in MODULES for table in module.TABLES)
    return tuple(name for table in (*tables, FAILURES) for name in table.names())
