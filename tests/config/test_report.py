"""Settings of the scheduled report."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.config.file import ConfigError, load
from monitor.report.buckets import DAY
from monitor.report.schedule import ReportSchedule

RECEIVERS = "timezone: Asia/Shanghai, alerts: {receivers: [{kind: console}, {kind: console, name: other}]}"


def scheduled(folder: Path, report: str, alerts: str = RECEIVERS) -> ReportSchedule | None:
    file = folder / "gpuwarden.yml"
    file.write_text(f"daemon: {{{alerts}, report: {report}}}")
    daemon = load(str(file), {}).daemon
    return None if daemon.report is None else daemon.report.schedule(daemon.alerts)


WRITTEN: list[tuple[str, str, ReportSchedule | None]] = [
    ("none", "", None),
    ("the defaults", "{cron: 0 9 * * mon}",
     ReportSchedule("0 9 * * mon", "Asia/Shanghai", ("console", "other"), "user", 7.0 * DAY)),
    ("all of it", "{cron: 0 9 1 * *, timezone: UTC, receivers: [other], by: node, since: 31d}",
     ReportSchedule("0 9 1 * *", "UTC", ("other",), "node", 31.0 * DAY)),
    ("a team: the rest goes to the other receivers", "{cron: 0 9 * * mon, by: queue, teams: {'nlp*': other}}",
     ReportSchedule("0 9 * * mon", "Asia/Shanghai", ("console",), "queue", 7.0 * DAY, (("nlp*", ("other",)),))),
    ("a receiver of both", "{cron: 0 9 * * mon, receivers: [other], teams: {nlp: [other, console]}}",
     ReportSchedule("0 9 * * mon", "Asia/Shanghai", ("other",), "user", 7.0 * DAY, (("nlp", ("other", "console")),))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "report", "expect"), WRITTEN, ids=[row[0] for row in WRITTEN])
def test_what_is_written(tmp_path: Path, name: str, report: str, expect: ReportSchedule | None) -> None:
    assert scheduled(tmp_path, report) == expect


def test_an_alertmanager_is_not_sent_reports_unless_it_is_named(tmp_path: Path) -> None:
    alerts = "alerts: {receivers: [{kind: alertmanager, url: 'http://127.0.0.1:9093'}, {kind: console}]}"
    found = scheduled(tmp_path, "{cron: 0 9 * * mon}", alerts)
    assert found is not None
    assert found.receivers == ("console",)


WRONG: list[tuple[str, str, str]] = [
    ("no schedule", "{cron: 0 9 * *}", "daemon.report.cron: '0 9 * *' is not a schedule"),
    ("nobody", "{cron: 0 9 * * mon, receivers: [othe]}", "'othe': unknown receiver; did you mean 'other'?"),
    ("no such table", "{cron: 0 9 * * mon, by: card}", "daemon.report.by: 'card' is not one of"),
    ("longer than it is remembered", "{cron: 0 9 * * mon, since: 401d}", "at most 400d"),
    ("shorter than an hour", "{cron: 0 9 * * mon, since: 5m}", "at least 1h"),
    (
        "a team without a known receiver",
        "{cron: 0 9 * * mon, teams: {nlp: nlp-group}}",
        "teams: nlp: 'nlp-group': unknown receiver",
    ),
    ("another key", "{cron: 0 9 * * mon, format: csv}", "daemon.report.format: unknown"),
]


@pytest.mark.parametrize(("name", "report", "says"), WRONG, ids=[row[0] for row in WRONG])
def test_what_is_refused(tmp_path: Path, name: str, report: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        scheduled(tmp_path, report)
    assert says in str(refused.value)


def test_without_receivers_none_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"daemon\.alerts has no receivers"):
        scheduled(tmp_path, "{cron: 0 9 * * mon, receivers: [wecom]}", "alerts: {}")
