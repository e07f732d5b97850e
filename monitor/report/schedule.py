"""Schedule of the report."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.report.buckets import By


@dataclass(frozen=True)
class ReportSchedule:
    """When a report on the last `seconds` is sent, and to which receivers.

    `teams` are shell patterns of queues, with the receivers of a digest of these queues.
    """

    cron: str
    timezone: str
    receivers: tuple[str, ...]
    by: By
    seconds: float
    teams: tuple[tuple[str, tuple[str, ...]], ...] = ()
