"""Sends the report on a schedule, through the same outbox as alerts. One that was missed is made up once."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from monitor.alert.model import Notification, NotificationReason, Summary
from monitor.base.cron import fires_in
from monitor.facts.findings import Severity
from monitor.leader.elector import Alone, Leading, NotLeadingError
from monitor.report.model import Report, ReportAsked
from monitor.report.render import notes
from monitor.report.schedule import Schedule

log = logging.getLogger(__name__)
BEAT = 5.0
GROUP = NOTE = "report"


class Outbox(Protocol):
    """Where messages are left, together with what is to be remembered of that."""

    def note(self, name: str) -> bytes | None: ...

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None: ...


def letters(report: Report, receivers: Sequence[str]) -> tuple[Notification, ...]:
    """Given a report, return what is sent of it: one message for each receiver. Pure."""
    fired: Counter[str] = Counter()
    resolved: Counter[str] = Counter()
    for each in report.incidents:
        fired[each.rule] += each.fired
        resolved[each.rule] += each.resolved
    summary = Summary(
        since=report.since, until=report.until, fired=dict(fired), resolved=dict(resolved), notes=notes(report)
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


class ReportMail:
    """Looks at the clock between start() and stop()."""

    def __init__(
        self,
        schedule: Schedule,
        reports: ReportAsked,
        outbox: Outbox,
        now: Callable[[], float] = time.time,
        leading: Leading | None = None,
    ) -> None:
        self._leading = leading or Alone()
        self._schedule = schedule
        self._reports = reports
        self._outbox = outbox
        self._now = now
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_watch, name="report", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(1.0)

    def look(self) -> None:
        """Send a report if one is due since the last."""
        now, note = self._now(), self._outbox.note(NOTE)
        last = None if note is None else float(note)
        if last is None or last > now:  # the first time, or the clock was wrong then
            self._outbox.send((), {NOTE: repr(now).encode()})
            return
        last = max(last, self._leading.record().marks.get(NOTE, 0.0))
        if self._leading.holds() and fires_in(self._schedule.cron, self._schedule.timezone, last, now):
            self._leading.mark(NOTE, now)
            report = self._reports.report(self._schedule.seconds, self._schedule.by)
            self._outbox.send(letters(report, self._schedule.receivers), {NOTE: repr(now).encode()})

    def _keep_watch(self) -> None:
        while not self._stopping.wait(BEAT):
            try:
                self.look()
            except NotLeadingError as error:
                log.warning("the report is left to another replica: %s", error)
            except Exception:  # whatever is odd about one report, the next attempt may succeed
                log.exception("sending the report")
