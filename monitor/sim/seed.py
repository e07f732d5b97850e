"""Writes the past of the simulated cluster into the files of a daemon, before and while it starts.

The last day is written before: it takes half a second. The six days before it follow in the background, the latest
hour first.
"""

from __future__ import annotations

import os
import threading
from contextlib import closing
from pathlib import Path

from monitor.alert.store import FILE as ALERTS_FILE
from monitor.alert.store import AlertStore
from monitor.base.threads import spawn
from monitor.history.model import COARSE_SECONDS, FINE_SPAN_SECONDS, HOUR_SECONDS, MINUTE_SECONDS, SPAN_SECONDS
from monitor.history.open_hour import OpenHour
from monitor.history.store import FILE as HISTORY_FILE
from monitor.history.store import HistoryStore
from monitor.report.store import FILE as USAGE_FILE
from monitor.report.store import UsageStore
from monitor.sim.past import ClusterPast
from monitor.sim.past_figures import COARSE_WOBBLE_RATIO, WOBBLE_RATIO, PastFigures, past_buckets
from monitor.sim.past_outages import past_outages, record_alerts

MAX_NODES = 16  # of a demo with a past: that of more nodes takes longer than their start
HOURS = SPAN_SECONDS // HOUR_SECONDS
FINE_HOURS = FINE_SPAN_SECONDS // HOUR_SECONDS


class Seeding:
    """Writes the past of a cluster into a state directory."""

    def __init__(self, past: ClusterPast, state: Path) -> None:
        self._past = past
        self._state = state
        self._outages = past_outages(past)
        self._figures = PastFigures(past, self._outages)
        self._open_at = int(past.now // HOUR_SECONDS) * HOUR_SECONDS  # start of the current hour
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def write_recent(self) -> None:
        """Write the last day of the charts, and all of alerts and GPU time."""
        now = self._past.now
        with closing(AlertStore(self._path(ALERTS_FILE))) as alerts:
            record_alerts(alerts, self._outages, now)
        with closing(UsageStore(self._path(USAGE_FILE))) as usage:
            since = float(self._open_at - SPAN_SECONDS)
            watched = dict.fromkeys(range(int(since), self._open_at, HOUR_SECONDS), float(HOUR_SECONDS))
            usage.add(
                past_buckets(self._past, self._outages, since, now), watched | {self._open_at: now - self._open_at}
            )
        with closing(HistoryStore(self._path(HISTORY_FILE))) as history:
            for number in range(FINE_HOURS, 0, -1):
                history.close_hour(self._hour(self._open_at - number * HOUR_SECONDS, MINUTE_SECONDS, now))
            current = self._hour(self._open_at, MINUTE_SECONDS, now)
            history.put_minutes(current.start, current.unsaved())

    def start(self) -> None:
        """Write the days before the last one in the background."""
        self._thread = spawn("past", self.write_older)

    def stop(self) -> None:
        """Stop writing, and wait until nothing is written."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def write_older(self) -> None:
        """Write the days before the last one."""
        with closing(HistoryStore(self._path(HISTORY_FILE))) as history:
            for number in range(FINE_HOURS + 1, HOURS + 1):
                if self._stopping.is_set():
                    return
                history.close_hour(self._hour(self._open_at - number * HOUR_SECONDS, COARSE_SECONDS, self._past.now))

    def _hour(self, start: int, step: int, until: float) -> OpenHour:
        hour = OpenHour(start)
        wobble = COARSE_WOBBLE_RATIO if step == COARSE_SECONDS else WOBBLE_RATIO
        for at in range(start, min(start + HOUR_SECONDS, int(until) // MINUTE_SECONDS * MINUTE_SECONDS), step):
            hour.add((at - start) // MINUTE_SECONDS, self._figures.samples(float(at), wobble))
        return hour

    def _path(self, file: str) -> str:
        return os.path.join(self._state, file)
