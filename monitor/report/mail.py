"""Sends the report on a schedule through the alert outbox. A missed report is made up once."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from monitor.alert.model import Notification, NotificationReason, Summary
from monitor.base.cron import fires_in
from monitor.base.threads import Periodic
from monitor.facts.findings import Severity
from monitor.leader.elector import LeaderElector, NotLeaderError, SingleReplica
from monitor.report.charts import report_charts
from monitor.report.model import Report, ReportSource
from monitor.report.render import message_texts
from monitor.report.schedule import ReportSchedule

log = logging.getLogger(__name__)
CHECK_INTERVAL_SECONDS = 5.0
GROUP = LAST_SENT_KEY = "report"


class ReportOutbox(Protocol):
    """The alert outbox, which stores values in the same transaction as notifications."""

    def note(self, name: str) -> bytes | None: ...

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None: ...


def report_notifications(report: Report, receivers: Sequence[str], timezone: str = "UTC") -> tuple[Notification, ...]:
    """One notification with the report per receiver."""
    fired: Counter[str] = Counter()
    resolved: Counter[str] = Counter()
    for incident in report.incidents:
        fired[incident.rule] += incident.fired
        resolved[incident.rule] += incident.resolved
    summary = Summary(
        since=report.since,
        until=report.until,
        fired=dict(fired),
        resolved=dict(resolved),
        notes=message_texts(report, timezone),
        charts=report_charts(report, timezone),
    )
    return tuple(
        Notification(
            id=hashlib.sha256(f"{GROUP} {receiver} {report.until!r}".encode()).hexdigest()[:24],
            receiver=receiver,
            group=GROUP,
            reason=NotificationReason.REPEAT,
            severity=Severity.INFO,
            at=report.until,
            summary=summary,
        )
        for receiver in receivers
    )


class ReportScheduler:
    """Sends reports between start() and stop()."""

    def __init__(
        self,
        schedule: ReportSchedule,
        reports: ReportSource,
        outbox: ReportOutbox,
        now: Callable[[], float] = time.time,
        leading: LeaderElector | None = None,
    ) -> None:
        self._leading = leading or SingleReplica()
        self._schedule = schedule
        self._reports = reports
        self._outbox = outbox
        self._now = now
        self._checks = Periodic("report", self._check, CHECK_INTERVAL_SECONDS, initial_delay=CHECK_INTERVAL_SECONDS)

    def start(self) -> None:
        self._checks.start()

    def stop(self) -> None:
        self._checks.stop(1.0)

    def check(self) -> None:
        """Send a report if one is due."""
        now, stored = self._now(), self._outbox.note(LAST_SENT_KEY)
        last = None if stored is None else float(stored)
        if last is None or last > now:  # the first start, or the clock was wrong
            self._outbox.send((), {LAST_SENT_KEY: repr(now).encode()})
            return
        last = max(last, self._leading.record().marks.get(LAST_SENT_KEY, 0.0))
        if self._leading.holds() and fires_in(self._schedule.cron, self._schedule.timezone, last, now):
            self._leading.mark(LAST_SENT_KEY, now)
            report = self._reports.report(self._schedule.seconds, self._schedule.by)
            notifications = report_notifications(report, self._schedule.receivers, self._schedule.timezone)
            self._outbox.send(notifications, {LAST_SENT_KEY: repr(now).encode()})

    def _check(self) -> None:
        try:
            self.check()
        except NotLeaderError as error:
            log.warning("another replica sends the report: %s", error)
