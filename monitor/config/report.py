"""Settings of the scheduled report.

daemon:
  report: {cron: "0 9 * * mon", by: user, since: 7d}
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ValidationInfo

from monitor.config.alerts import AlertsConfig
from monitor.config.derive import build
from monitor.config.receivers import check_receivers
from monitor.config.routes import Zone
from monitor.config.types import Cron, Duration, Names, Section, require
from monitor.report.buckets import DAY, HOUR, KEEP_DAYS, By
from monitor.report.schedule import ReportSchedule

Period = Annotated[
    Duration,
    require(
        lambda seconds: HOUR <= seconds <= KEEP_DAYS * DAY,
        f"a report is on at least 1h and at most {KEEP_DAYS}d, which is how long it is remembered",
    ),
]


class ReportConfig(Section):
    """A report on a cron schedule, covering the time before it; without `receivers`, to all of them."""

    cron: Cron
    timezone: Zone | None = None
    receivers: Names | None = None
    by: By = "user"
    since: Period = 7.0 * DAY

    def schedule(self, alerts: AlertsConfig) -> ReportSchedule:
        """Schedule and receivers; the alert settings supply the defaults."""
        receivers = alerts.direct_receivers() if self.receivers is None else self.receivers
        timezone = self.timezone or alerts.timezone
        return build(ReportSchedule, self, timezone=timezone, receivers=receivers, seconds=self.since)


def check_report(report: ReportConfig | None, info: ValidationInfo) -> ReportConfig | None:
    """Require that all receivers of the report exist, unless the alert settings are invalid themselves."""
    if report is not None and "alerts" in info.data:
        absent = "daemon.alerts has no receivers"
        check_receivers(report.receivers or (), info.data["alerts"].receivers, "receivers: ", absent)
    return report
