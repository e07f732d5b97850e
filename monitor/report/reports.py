"""Reports on demand: what the record, the history of alerts and the journal of cleanup say of a stretch of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from monitor.alert.store import KEEP_DAYS as KEEP_EVENTS_DAYS
from monitor.alert.store import KEEP_ROWS, AlertEvent
from monitor.cleanup.journal import Entry, ItemState
from monitor.report.buckets import DAY, By
from monitor.report.model import Cleaned, Material, Report, make_report
from monitor.report.recorder import Recorder
from monitor.report.store import whole


class Journal(Protocol):
    """What cleanup did."""

    def ended_since(self, at: float) -> Sequence[Entry]:
        """Return the items that ended after a time, and perhaps some that have not ended."""
        ...

    def kept_since(self) -> float | None:
        """Return from when on that is known; None if nothing was forgotten yet."""
        ...


class Reports:
    """Makes reports. `history` gives what happened to alerts since a time, the latest first."""

    def __init__(
        self,
        recorder: Recorder,
        history: Callable[[float], Sequence[AlertEvent]],
        journal: Journal | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._recorder = recorder
        self._history = history
        self._journal = journal
        self._now = now

    def report(self, seconds: float, by: By) -> Report:
        """Return the report on the last so many seconds, and what is missing to a whole hour before them."""
        self._recorder.save()  # up to this moment
        now = self._now()
        since = float(whole(now - seconds, now))
        store, events = self._recorder.store, self._history(since)
        material = Material(
            buckets=store.buckets(since, now, by),
            watched_seconds=store.watched(since, now),
            events=events,
            events_since=events[-1].at if len(events) >= KEEP_ROWS else now - KEEP_EVENTS_DAYS * DAY,
            disks=store.disks(now),
            cleaned=None if self._journal is None else tuple(cleaned(self._journal.ended_since(since))),
            cleaned_since=0.0 if self._journal is None else self._journal.kept_since() or 0.0,
        )
        return make_report(material, since, now, by)


def cleaned(entries: Iterable[Entry]) -> Iterable[Cleaned]:
    """Given items of cleanup, yield those that were done, and what they freed."""
    for entry in entries:
        if entry.state is ItemState.DONE and entry.ended_at is not None:
            yield Cleaned(
                at=entry.ended_at,
                freed_bytes=entry.freed_bytes or 0,
                node=entry.item.node,
                user=entry.item.owner,
            )
