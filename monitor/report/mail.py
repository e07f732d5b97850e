"""Sends the report on a schedule through the alert outbox. A missed report is made up once."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from monitor.alert.charts import MessageCharts
from monitor.alert.model import Notification, NotificationReason, Summary
from monitor.base.cron import fires_in
from monitor.base.threads import Periodic
from monitor.facts.findings import Severity
from monitor.facts.text import Text
from monitor.leader.elector import LeaderElector, NotLeaderError, SingleReplica
from monitor.report.charts import report_charts
from monitor.report.model import Report, ReportSource
from monitor.report.schedule import ReportSchedule
from monitor.report.team import TeamReport, team_charts, team_texts
from monitor.report.texts import message_texts

log = logging.getLogger(__name__)
CHECK_INTERVAL_SECONDS = 5.0
GROUP = LAST_SENT_KEY = "report"


class ReportOutbox(Protocol):
    """The alert outbox, which stores values in the same transaction as notifications."""

    def note(self, name: str) -> bytes | None: ...

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None: ...


class DigestSource(ReportSource, Protocol):
    """Makes reports, also of teams."""

    def team(self, team: str, seconds: float, timezone: str) -> TeamReport: ...


def report_notifications(report: Report, receivers: Sequence[str], timezone: str = "UTC") -> tuple[Notification, ...]:
    """One notification with the report per receiver."""
    notes, charts = message_texts(report, timezone), report_charts(report, timezone)
    return _notifications(GROUP, _summary(report, notes, charts), receivers)


def team_notifications(digest: TeamReport, receivers: Sequence[str]) -> tuple[Notification, ...]:
    """One notification with the digest of a team per receiver."""
    summary = _summary(digest.report, team_texts(digest), team_charts(digest))
    return _notifications(f"{GROUP}/{digest.team}", summary, receivers)


def _summary(report: Report, notes: tuple[Text, ...], charts: MessageCharts) -> Summary:
    fired: Counter[str] = Counter()
    resolved: Counter[str] = Counter()
    for incident in report.incidents:
        fired[incident.rule] += incident.fired
        resolved[incident.rule] += incident.resolved
    return Summary(
        since=report.since, until=report.until, fired=dict(fired), resolved=dict(resolved), notes=notes, charts=charts
    )


def _notifications(group: str, summary: Summary, receivers: Sequence[str]) -> tuple[Notification, ...]:
    return tuple(
        Notification(
            id=hashlib.sha256(f"{group} {receiver} {summary.until!r}".encode()).hexdigest()[:24],
            receiver=receiver,
            group=group,
            reason=NotificationReason.REPEAT,
            severity=Severity.INFO,
            at=summary.until,
            summary=summary,
        )
        for receiver in receivers
    )


class ReportScheduler:
    """Sends reports between start() and stop()."""

    def __init__(
        self,
        schedule: ReportSchedule,
        reports: DigestSource,
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
            self._outbox.send(self._notifications(), {LAST_SENT_KEY: repr(now).encode()})

    def _notifications(self) -> tuple[Notification, ...]:
        """The report, and the digest of each team."""
        schedule, sent = self._schedule, list[Notification]()
        if schedule.receivers:
            report = self._reports.report(schedule.seconds, schedule.by)
            sent += report_notifications(report, schedule.receivers, schedule.timezone)
        for team, receivers in schedule.teams:
            sent += team_notifications(self._reports.team(team, schedule.seconds, schedule.timezone), receivers)
        return tuple(sent)

    def _check(self) -> None:
        try:
            self.check()
        except NotLeaderError as error:
            log.warning("another replica sends the report: %s", error)
