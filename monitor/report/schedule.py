"""Schedule of the report."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.report.buckets import By


@dataclass(frozen=True)
class ReportSchedule:
    """When a report on the last `seconds` is sent, and to which receivers."""

    cron: str
    timezone: str
    receivers: tuple[str, ...]
    by: By
    seconds: float
