"""The settings of the report that is sent on a schedule.

daemon:
  report: {cron: "0 9 * * mon", by: user, since: 7d}
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, ValidationInfo, field_validator

from monitor.base.cron import cron_trigger
from monitor.base.text import unknown
from monitor.config.alerts import AlertsConfig
from monitor.config.receivers import named
from monitor.config.routes import Names, Zone
from monitor.config.types import Duration, Section
from monitor.report.buckets import DAY, HOUR, KEEP_DAYS, By
from monitor.report.schedule import ReportSchedule


def _is_kept(seconds: float) -> float:
    if not HOUR <= seconds <= KEEP_DAYS * DAY:
        raise ValueError(f"a report is on at least 1h and at most {KEEP_DAYS}d, which is how long it is remembered")
    return seconds


Stretch = Annotated[Duration, AfterValidator(_is_kept)]


class ReportConfig(Section):
    """A report by a crontab line on the time before it: to these receivers, or to all."""

    cron: str
    timezone: Zone | None = None
    receivers: Names | None = None
    by: By = "user"
    since: Stretch = 7.0 * DAY

    @field_validator("cron")
    @classmethod
    def _can_be_understood(cls, cron: str) -> str:
        cron_trigger(cron, "UTC")
        return cron

    def schedule(self, alerts: AlertsConfig) -> ReportSchedule:
        """Given the settings of alerts, return when the report is sent to whom."""
        everybody = tuple(name for name, each in named(alerts.receivers).items() if each.real_kind != "alertmanager")
        return ReportSchedule(
            cron=self.cron,
            timezone=self.timezone or alerts.timezone,
            receivers=everybody if self.receivers is None else self.receivers,
            by=self.by,
            seconds=self.since,
        )


def goes_somewhere(report: ReportConfig | None, info: ValidationInfo) -> ReportConfig | None:
    """Given the section in its daemon, return it. Raise ValueError if there is no receiver of a name."""
    if report is None or "alerts" not in info.data:  # if the alerts are wrong, that is enough
        return report
    known = named(info.data["alerts"].receivers)
    for name in report.receivers or ():
        if name not in known:
            hint = unknown("receiver", name, known) if known else "daemon.alerts has no receivers"
            raise ValueError(f"receivers: {name!r}: {hint}")
    return report
