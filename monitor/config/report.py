"""Settings of the scheduled report.

daemon:
  report: {cron: "0 9 * * mon", by: queue, since: 7d, teams: {nlp: nlp-group}}
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationInfo

from monitor.config.alerts import AlertsConfig
from monitor.config.derive import build
from monitor.config.receivers import check_receivers
from monitor.config.routes import Zone
from monitor.config.types import Cron, Duration, Names, NonEmpty, Section, require
from monitor.report.buckets import DAY, HOUR, KEEP_DAYS, By
from monitor.report.schedule import ReportSchedule

MAX_TEAMS = 256
Period = Annotated[
    Duration,
    require(
        lambda seconds: HOUR <= seconds <= KEEP_DAYS * DAY,
        f"a report is on at least 1h and at most {KEEP_DAYS}d, which is how long it is remembered",
    ),
]


Teams = Annotated[dict[NonEmpty, Names], Field(max_length=MAX_TEAMS)]


class ReportConfig(Section):
    """A report on a cron schedule, covering the time before it.

    Without `receivers` it goes to all except those of `teams`, which get a digest of the queues that match a pattern.
    """

    cron: Cron
    timezone: Zone | None = None
    receivers: Names | None = None
    by: By = "user"
    since: Period = 7.0 * DAY
    teams: Teams = Field(default_factory=dict)

    def schedule(self, alerts: AlertsConfig) -> ReportSchedule:
        """Schedule and receivers; the alert settings supply the defaults."""
        of_teams = {name for names in self.teams.values() for name in names}
        others = tuple(name for name in alerts.direct_receivers() if name not in of_teams)
        receivers = others if self.receivers is None else self.receivers
        timezone = self.timezone or alerts.timezone
        return build(
            ReportSchedule,
            self,
            timezone=timezone,
            receivers=receivers,
            seconds=self.since,
            teams=tuple(self.teams.items()),
        )


def check_report(report: ReportConfig | None, info: ValidationInfo) -> ReportConfig | None:
    """Require that all receivers of the report exist, unless the alert settings are invalid themselves."""
    if report is not None and "alerts" in info.data:
        absent = "daemon.alerts has no receivers"
        check_receivers(report.receivers or (), info.data["alerts"].receivers, "receivers: ", absent)
        for team, names in report.teams.items():
            check_receivers(names, info.data["alerts"].receivers, f"teams: {team}: ", absent)
    return report
