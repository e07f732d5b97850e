"""When the report is sent, and to whom."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.report.buckets import By


@dataclass(frozen=True)
class ReportSchedule:
    """A report on the last so many seconds goes to these receivers at each time of the schedule."""

    cron: str
    timezone: str
    receivers: tuple[str, ...]
    by: By
    seconds: float
