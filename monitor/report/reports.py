"""Reports on demand, from usage records, the alert history and the cleanup journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from monitor.alert.store import KEEP_DAYS as KEEP_EVENTS_DAYS
from monitor.alert.store import KEEP_ROWS, AlertEvent
from monitor.base.globs import matches_glob
from monitor.cleanup.journal_records import ItemState, JournalEntry
from monitor.cleanup.plan.keeps import Keep
from monitor.facts.prices import GpuPrices
from monitor.report.buckets import DAY, By
from monitor.report.kept import kept_objects
from monitor.report.model import CleanedItem, Report, ReportInputs, make_report
from monitor.report.recorder import UsageRecorder
from monitor.report.store import period_start
from monitor.report.team import TeamReport, make_team_report

CHART_DAYS = 14  # more does not fit into a mail


class CleanupHistory(Protocol):
    """What cleanup did."""

    def ended_since(self, at: float) -> Sequence[JournalEntry]:
        """Items that ended since a time, and possibly some that have not ended."""
        ...

    def kept_since(self) -> float | None:
        """Start of the recorded history; None if nothing was pruned yet."""
        ...

    def keeps(self) -> Iterable[Keep]:
        """What owners asked to keep, also in the past."""
        ...


class ReportService:
    """Makes reports. `history` returns the alert events since a time, newest first."""

    def __init__(
        self,
        recorder: UsageRecorder,
        history: Callable[[float], Sequence[AlertEvent]],
        cleanup: CleanupHistory | None = None,
        now: Callable[[], float] = time.time,
        prices: GpuPrices | None = None,
    ) -> None:
        self._recorder = recorder
        self._history = history
        self._cleanup = cleanup
        self._now = now
        self._prices = prices

    def report(self, seconds: float, by: By) -> Report:
        """Report on the last `seconds`, extended to a full hour."""
        now = self._now()
        since = float(period_start(now - seconds, now))
        usage = self._recorder.usage(since, now, by, max(since, now - CHART_DAYS * DAY))
        store, events = self._recorder.store, self._history(since)
        inputs = ReportInputs(
            buckets=usage.buckets,
            hours=usage.hours,
            watched_seconds=usage.watched_seconds,
            events=events,
            events_since=events[-1].at if len(events) >= KEEP_ROWS else now - KEEP_EVENTS_DAYS * DAY,
            disks=store.disks(now, by),
            cleaned=None if self._cleanup is None else tuple(cleaned_items(self._cleanup.ended_since(since))),
            cleaned_since=0.0 if self._cleanup is None else self._cleanup.kept_since() or 0.0,
            prices=self._prices,
            kept=() if self._cleanup is None else kept_objects(self._cleanup.keeps(), now),
        )
        return make_report(inputs, since, now, by)

    def team(self, team: str, seconds: float, timezone: str) -> TeamReport:
        """Digest of the queues that match the pattern `team`, on the last `seconds`."""
        now = self._now()
        since = float(period_start(now - seconds, now))
        used = self._recorder.usage(since, now, "queue", now).buckets
        names = {bucket.queue for bucket in used if bucket.queue is not None and matches_glob(bucket.queue, team)}
        inputs = ReportInputs(
            buckets=self._recorder.hourly(since, now, "queue", names),
            events=[each for each in self._history(since) if matches_glob(_queue(each), team)],
            prices=self._prices,
        )
        return make_team_report(team, inputs, since, now, timezone)


def _queue(event: AlertEvent) -> str:
    return event.alert.finding.labels.get("queue", "")


def cleaned_items(entries: Iterable[JournalEntry]) -> Iterable[CleanedItem]:
    """Items that were done, with the bytes that they freed."""
    for entry in entries:
        if entry.state is ItemState.DONE and entry.ended_at is not None:
            yield CleanedItem(
                at=entry.ended_at,
                freed_bytes=entry.freed_bytes or 0,
                node=entry.item.node,
                user=entry.item.owner,
            )
