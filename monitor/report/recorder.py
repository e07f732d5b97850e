"""Looks at the cluster once a cycle and writes down what happened: at most a minute is lost when it is killed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from monitor.base.sqlite import DatabaseError
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView
from monitor.facts.datasets import ScanFact
from monitor.report.buckets import Tally
from monitor.report.disk_use import disk_uses
from monitor.report.history import CLUSTER, HistoryMetric, HistorySubject, MetricHistory, Point
from monitor.report.store import UsageStore

log = logging.getLogger(__name__)
STARTUP_INTERVAL_SECONDS = 1.0  # how often it is looked as long as there is nothing to be seen yet
SAVE_INTERVAL_SECONDS = 60.0
DISKS_INTERVAL_SECONDS = 600.0
PRUNE_INTERVAL_SECONDS = 3600.0

Scans = Callable[[], Iterable[tuple[str, ScanFact]]]  # the last scan of each root, with its node


class UsageRecorder:
    """Looks between start() and stop()."""

    def __init__(
        self,
        store: UsageStore,
        view: Callable[[], ClusterView],
        agents: Callable[[], Sequence[AgentFact]],
        cycle: float,
        scans: Scans = tuple,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self._view = view
        self._agents = agents
        self._cycle = cycle
        self._scans = scans
        self._now = now
        self._monotonic = monotonic
        self._tally = Tally(cycle)
        self._history = MetricHistory()
        self._save_at = monotonic() + SAVE_INTERVAL_SECONDS
        self._disks_at = self._prune_at = 0.0
        self._seen = False
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, name="record", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End, and write down what happened until now."""
        self._stopping.set()
        self._thread.join(1.0)
        self.save()
        self.store.close()

    def series(
        self, kind: HistorySubject, name: str = CLUSTER, what: HistoryMetric = HistoryMetric.UTILIZATION
    ) -> tuple[Point, ...]:
        """Return how a value was over the last days, as `History.series` does."""
        with self._lock:
            return self._history.series(kind, name, what)

    def look(self) -> None:
        """Take in how the cluster is now."""
        with self._lock:
            self._look()

    def save(self) -> None:
        """Write down what happened until now. What cannot be written is kept, and tried again."""
        with self._lock:
            self._look()
            self._save_at = self._monotonic() + SAVE_INTERVAL_SECONDS
            try:
                self.store.add(self._tally.buckets(), self._tally.watched)
                self._tally.forget()
                self._save_disks()
            except DatabaseError as error:
                log.error("the record cannot be written, it is tried again: %s", error)

    def _look(self) -> None:
        view, wall, monotonic = self._view(), self._now(), self._monotonic()
        self._seen = bool(view.gpus)
        self._tally.add(view, wall, monotonic)
        self._history.take(view, self._agents(), wall, monotonic)

    def _save_disks(self) -> None:
        if self._monotonic() >= self._disks_at:
            uses = disk_uses(self._view().pods, self._agents(), self._scans(), self._now())
            self.store.put_disks(uses)
            if uses:  # right after a start nobody has answered yet
                self._disks_at = self._monotonic() + DISKS_INTERVAL_SECONDS

    def _keep_looking(self) -> None:
        while not self._stopping.wait(self._cycle if self._seen else min(STARTUP_INTERVAL_SECONDS, self._cycle)):
            try:
                self.look()
                if self._monotonic() >= self._save_at:
                    self.save()
                if self._monotonic() >= self._prune_at:
                    self._prune_at = self._monotonic() + PRUNE_INTERVAL_SECONDS
                    self.store.prune(self._now())
            except Exception:  # whatever is odd about one view, the next may be well
                log.exception("recording what happens")
