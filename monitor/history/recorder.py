"""Records the history. At most a minute is lost if the daemon is killed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from monitor.base.sqlite import DatabaseError
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView
from monitor.history.blocks import CodeColumn
from monitor.history.model import HOUR_SECONDS, MINUTE_SECONDS, Entity, HistoryMetric
from monitor.history.node_loads import NodeLoads
from monitor.history.open_hour import OpenHour
from monitor.history.samples import Sampler
from monitor.history.store import HistoryStore

log = logging.getLogger(__name__)
SAVE_INTERVAL_SECONDS = 30.0  # with the longest cycle of half a minute, less than a minute is lost
MAX_ENDED_HOURS = 4  # that wait to be stored, while the database fails


class HistoryRecorder:
    """Adds one view of the cluster after the other to the store.

    Any thread may read; record(), save() and close() are for one.
    """

    def __init__(
        self,
        store: HistoryStore,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self._now = now
        self._monotonic = monotonic
        self._sampler = Sampler()
        self._lock = threading.Lock()
        self._saving = threading.Lock()  # close() may come while the end of an hour is being written
        *self._ended, self._hour = store.journal() or (self._open(self._hour_of(now())),)
        self._save_at = 0.0

    def record(self, view: ClusterView, agents: Iterable[AgentFact]) -> None:
        """Add the current figures, and save them if that is due."""
        now = self._now()
        start = self._hour_of(now)
        minute = int(now - start) // MINUTE_SECONDS
        if start != self._hour.start:
            self._begin(start)
        elif minute != self._hour.minute:
            self.save()  # all of the minute that has ended
        samples = tuple(self._sampler.samples(view, agents))
        with self._lock:
            self._hour.add(minute, samples)
        if self._monotonic() >= self._save_at:
            self.save()

    def save(self) -> None:
        """Write the current minute and the hours that have ended. On failure they are written later."""
        self._save_at = self._monotonic() + SAVE_INTERVAL_SECONDS
        with self._saving:
            try:
                self._save_minutes()
                while self._ended:
                    self.store.close_hour(self._ended[0])
                    with self._lock:
                        del self._ended[0]
            except DatabaseError as error:
                log.error("cannot write the history, will retry: %s", error)

    def close(self) -> None:
        """Save everything recorded so far, and close the store."""
        self.save()
        self.store.close()

    def series(self, entity: Entity) -> dict[int, dict[HistoryMetric, CodeColumn]]:
        """Codes of an entity in the hours that are not stored yet, by start of the hour."""
        with self._lock:
            return {hour.start: hour.series(entity) for hour in (*self._ended, self._hour)}

    def node_loads(self) -> tuple[NodeLoads, ...]:
        """Utilisation of all nodes in the hours that are not stored yet, by the minute."""
        with self._lock:
            return tuple(hour.node_loads() for hour in (*self._ended, self._hour))

    def _begin(self, start: int) -> None:
        """Begin another hour: the next one, or whichever the clock was set to."""
        self.save()
        opened = self._open(start)
        with self._lock:
            self._ended = [*self._ended, self._hour][-MAX_ENDED_HOURS:]
            self._hour = opened
        self._save_at = 0.0

    def _open(self, start: int) -> OpenHour:
        try:
            return self.store.open_hour(start)
        except DatabaseError as error:
            log.error("cannot read the history of this hour: %s", error)
            return OpenHour(start)

    def _save_minutes(self) -> None:
        with self._lock:
            minutes = self._hour.unsaved()
        if minutes:
            self.store.put_minutes(self._hour.start, minutes)
            self._hour.mark_saved()

    @staticmethod
    def _hour_of(now: float) -> int:
        return int(now // HOUR_SECONDS) * HOUR_SECONDS
