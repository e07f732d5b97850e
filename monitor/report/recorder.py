"""Records usage and history once a cycle. At most a minute is lost if the daemon is killed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import add
from typing import NamedTuple

from monitor.base.sqlite import DatabaseError
from monitor.base.threads import Periodic
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView
from monitor.facts.datasets import ScanFact
from monitor.history.recorder import HistoryRecorder
from monitor.report.buckets import UNPRICED, Bucket, By, GpuTimeTotals, Priced, figures_of
from monitor.report.disk_use import disk_uses
from monitor.report.store import UsageStore, named_bucket

log = logging.getLogger(__name__)
STARTUP_INTERVAL_SECONDS = 1.0  # until the first GPU is seen
SAVE_INTERVAL_SECONDS = 60.0
DISKS_INTERVAL_SECONDS = 600.0
START_SECONDS = 60.0  # within which all agents have answered, unless they are silent
PRUNE_INTERVAL_SECONDS = 3600.0
STOP_TIMEOUT_SECONDS = 10.0  # a block of the history may be written


class RecordedUsage(NamedTuple):
    """Usage in a period. Several `buckets` may have the same name; `hours` are sums of all GPUs, oldest first."""

    buckets: tuple[Bucket, ...]
    hours: tuple[Bucket, ...]
    watched_seconds: float


Scans = Callable[[], Iterable[tuple[str, ScanFact]]]  # the last scan of each root, with its node


class UsageRecorder:
    """Records between start() and stop()."""

    def __init__(
        self,
        store: UsageStore,
        view: Callable[[], ClusterView],
        agents: Callable[[], Sequence[AgentFact]],
        cycle: float,
        scans: Scans = tuple,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        history: HistoryRecorder | None = None,
    ) -> None:
        self.store = store
        self._view = view
        self._agents = agents
        self._cycle = cycle
        self._scans = scans
        self._now = now
        self._monotonic = monotonic
        self._tally = GpuTimeTotals(cycle)
        self._history = history
        self._save_at = monotonic() + SAVE_INTERVAL_SECONDS
        self._disks_at = self._prune_at = 0.0
        self._settled_at = monotonic() + START_SECONDS
        self._seen_gpus = False
        self._lock = threading.Lock()
        self._cycles = Periodic("record", self._run_cycle, cycle, initial_delay=self._pause())

    def start(self) -> None:
        self._cycles.start()

    def stop(self) -> None:
        """Stop, and save everything recorded so far."""
        self._cycles.stop(STOP_TIMEOUT_SECONDS)
        self.save()
        self.store.close()
        if self._history is not None:
            self._history.close()

    def record(self) -> None:
        """Record the current state of the cluster."""
        with self._lock:
            self._record()

    def save(self) -> None:
        """Record, and write everything to the store. On failure it is kept and written later."""
        with self._lock:
            self._record()
            self._save_at = self._monotonic() + SAVE_INTERVAL_SECONDS
            try:
                self.store.add(self._tally.buckets(), self._tally.watched)
                self._tally.forget()
            except DatabaseError as error:
                log.error("cannot write usage records, will retry: %s", error)
            self._save_disks()

    def usage(self, since: float, until: float, by: By, hours_since: float) -> RecordedUsage:
        """What was recorded in [since, until), written or not, until this moment. Nothing is written."""
        with self._lock:  # what is written meanwhile would count twice
            self._record()
            unsaved = {key: sums for key, sums in self._tally.sums(by).items() if since <= key[0] < until}
            watched = sum(seconds for hour, seconds in self._tally.watched.items() if since <= hour < until)
            return RecordedUsage(
                buckets=self.store.buckets(since, until, by)
                + tuple(named_bucket(by, hour, name, priced, sums) for (hour, name, priced), sums in unsaved.items()),
                hours=_by_hour(self.store.hours(hours_since, until), unsaved, hours_since),
                watched_seconds=self.store.watched(since, until) + watched,
            )

    def hourly(self, since: float, until: float, by: By, names: Collection[str]) -> tuple[Bucket, ...]:
        """What these users, queues or nodes used in [since, until) by hour and model, written or not."""
        with self._lock:
            self._record()
            unsaved = [
                named_bucket(by, hour, name, priced, sums)
                for (hour, name, priced), sums in self._tally.sums(by).items()
                if since <= hour < until
            ]
            stored = self.store.hourly(since, until, by, names)
        return stored + tuple(bucket for bucket in unsaved if getattr(bucket, by) in names)

    def _record(self) -> None:
        view, wall, monotonic = self._view(), self._now(), self._monotonic()
        self._seen_gpus = bool(view.gpus)
        self._tally.add(view, wall, monotonic)

    def _save_disks(self) -> None:
        if self._monotonic() >= self._disks_at:
            agents = self._agents()
            uses = disk_uses(self._view().pods, agents, self._scans(), self._now())
            if not uses:  # right after the start, no agent has answered yet
                return
            try:
                self.store.put_disks(uses)
                if self._monotonic() >= self._settled_at or all(agent.snapshot is not None for agent in agents):
                    self._disks_at = self._monotonic() + DISKS_INTERVAL_SECONDS
            except DatabaseError as error:
                log.error("cannot write disk space, will retry: %s", error)

    def _run_cycle(self) -> float:
        self.record()
        if self._history is not None:
            self._history.record(self._view(), self._agents())
        if self._monotonic() >= self._save_at:
            self.save()
        elif not self._disks_at:
            with self._lock:
                self._save_disks()
        if self._monotonic() >= self._prune_at:
            self._prune_at = self._monotonic() + PRUNE_INTERVAL_SECONDS
            self.store.prune(self._now())
        return self._pause()

    def _pause(self) -> float:
        return self._cycle if self._seen_gpus else min(STARTUP_INTERVAL_SECONDS, self._cycle)


def _by_hour(
    stored: Iterable[Bucket], unsaved: Mapping[tuple[int, str | None, Priced], Sequence[float]], since: float
) -> tuple[Bucket, ...]:
    """Sums of all GPUs by hour, with those that are not stored yet."""
    hours: dict[int, tuple[float, ...]] = {bucket.hour: figures_of(bucket) for bucket in stored}
    for (hour, _, _), figures in unsaved.items():
        if hour >= since:
            known = hours.get(hour)
            hours[hour] = tuple(figures) if known is None else tuple(map(add, known, figures))
    return tuple(named_bucket("queue", hour, None, UNPRICED, hours[hour]) for hour in sorted(hours))
