"""What a configuration means: the settings that count most, and when each schedule runs next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from monitor.base.cron import next_run
from monitor.base.localtime import local_minute
from monitor.cleanup.policy import CleanupPolicy
from monitor.config.alerts import AlertsConfig
from monitor.config.daemon import DaemonConfig
from monitor.config.receivers import by_name
from monitor.config.report import ReportConfig
from monitor.config.root import Config
from monitor.i18n import Value, say


def summary_lines(config: Config, lang: str, now: float) -> tuple[str, ...]:
    """The summary, without secrets; times are in the time zone of each schedule."""
    daemon = config.daemon
    return (
        _say(lang, "zone", zone=daemon.zone, now=local_minute(now, daemon.zone)),
        *_processes(config, lang),
        _receivers(daemon.alerts, lang),
        *schedule_lines(daemon, lang, now),
    )


def schedule_lines(daemon: DaemonConfig, lang: str, now: float) -> Iterator[str]:
    """Cleanup policies, report, digest and maintenance windows, and when each runs next."""
    policies = daemon.cleanup.settings(daemon.zone)
    yield from (_policy(policy, lang, now) for policy in policies)
    if not policies:
        yield _say(lang, "no-cleanup")
    yield _report(daemon.report, daemon, lang, now) if daemon.report is not None else _say(lang, "no-report")
    if (digest := daemon.alerts.digest) is not None:
        yield _say(lang, "digest", next=_next_run(digest.cron, digest.timezone or daemon.zone, now))
    for window in daemon.alerts.windows():
        values: dict[str, Value] = {"next": _next_run(window.cron, window.timezone, now), "length": window.duration}
        yield _say(lang, "maintenance", **values)


def _processes(config: Config, lang: str) -> Iterator[str]:
    agent = config.agent
    schedules = [getattr(agent.collectors, name) for name in type(agent.collectors).model_fields]
    yield _say(
        lang,
        "agent" if agent.read_token() else "agent-without-token",
        node=agent.node_name,
        listen=str(agent.listen),
        running=sum(schedule.enabled for schedule in schedules),
        collectors=len(schedules),
        mounts=len(agent.mounts),
        registries=len(agent.registries),
    )
    yield _say(lang, "page", listen=str(config.daemon.listen), level=config.log_level)


def _receivers(alerts: AlertsConfig, lang: str) -> str:
    names = _list(lang, by_name(alerts.receivers))
    return _say(lang, "receivers", names=names) if names else _say(lang, "no-receivers")


def _policy(policy: CleanupPolicy, lang: str, now: float) -> str:
    when = policy.when
    values: dict[str, Value] = {
        "policy": policy.name,
        "kind": say(lang, f"page.cleanup.kind.{policy.kind}", {}),
        "mode": say(lang, f"page.cleanup.mode.{policy.mode.value}", {}),
    }
    if when.high is not None:
        values["high"] = when.high
    if when.cron is not None:
        values["next"] = _next_run(when.cron, when.timezone, now)
    key = "cleanup" if when.high is None else "cleanup-high" if when.cron is None else "cleanup-both"
    return _say(lang, key, **values)


def _report(report: ReportConfig, daemon: DaemonConfig, lang: str, now: float) -> str:
    schedule = report.schedule(daemon.alerts)
    of_teams = (name for _, receivers in schedule.teams for name in receivers)
    receivers = tuple(dict.fromkeys((*schedule.receivers, *of_teams)))
    if not receivers:
        return _say(lang, "report-to-no-receiver")
    names = _list(lang, receivers)
    return _say(lang, "report", names=names, next=_next_run(schedule.cron, schedule.timezone, now))


def _next_run(cron: str, timezone: str, now: float) -> str:
    at = next_run(cron, timezone, now)
    return "?" if at is None else local_minute(at, timezone)


def _list(lang: str, names: Iterable[str]) -> str:
    return say(lang, "alert.list", {}).join(names)


def _say(lang: str, key: str, **values: Value) -> str:
    return say(lang, f"config.{key}", values)
