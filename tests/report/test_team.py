"""The digest of a team: its queues and days, from the same records as the report."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from monitor.alert.store import AlertEvent
from monitor.report.buckets import DAY, HOUR, Bucket
from monitor.report.reports import ReportService
from monitor.report.team import TeamReport, team_charts
from tests.report.builders import HOUR0
from tests.report.reports import A100, PRICES, UNTIL, digest, fired
from tests.report.test_recorder import Rig

WEEK = 7.0 * DAY


def test_days_add_up_to_the_total() -> None:
    made = digest()
    assert [row.name for row in made.days] == [f"2025-11-{day:02}" for day in range(9, 17)]
    for field in ("allocated_hours", "wasted_hours", "cost", "wasted_cost", "unpriced_hours"):
        total = getattr(made.report.total, field)
        assert total > 0
        assert sum(getattr(row, field) for row in made.days) == pytest.approx(total)
        assert sum(getattr(row, field) or 0 for row in made.report.rows) == pytest.approx(total)


def test_a_team_of_one_queue_has_charts_of_its_days_only() -> None:
    made = digest()
    assert [chart.title.key for chart in team_charts(made).bars] == [
        "report.chart.day", "report.chart.waste.day", "report.chart.queue", "report.chart.waste.queue",
    ]  # fmt: skip
    one = msgspec.structs.replace(made.report, rows=made.report.rows[:1])
    alone = TeamReport("nlp", one, made.days)
    assert [chart.title.key for chart in team_charts(alone).bars] == ["report.chart.day", "report.chart.waste.day"]


def event(queue: str) -> AlertEvent:
    made = fired("gpu-idle", "idle-job", UNTIL)
    finding = msgspec.structs.replace(made.alert.finding, labels={"queue": queue})
    return msgspec.structs.replace(made, at=HOUR0, alert=msgspec.structs.replace(made.alert, finding=finding))


TEAMS: list[tuple[str, str, float, float | None, list[str], int]] = [
    ("a queue", "nlp", 6 * HOUR, 75.0, ["nlp"], 1),
    ("a pattern", "nlp*", 8 * HOUR, 100.0, ["nlp", "nlp-dev"], 2),
    ("a queue that does not exist", "nlq", 0.0, 0.0, [], 0),
]


@pytest.mark.parametrize(("name", "team", "seconds", "cost", "queues", "alerts"), TEAMS, ids=[row[0] for row in TEAMS])
def test_what_counts_for_a_team(
    tmp_path: Path, name: str, team: str, seconds: float, cost: float | None, queues: list[str], alerts: int
) -> None:
    rig = Rig(tmp_path)
    hour = int(HOUR0) - HOUR
    held = (("nlp", 4.0, hour), ("nlp", 2.0, hour - DAY), ("nlp-dev", 2.0, hour), ("cv", 9.0, hour))
    rig.store.add(
        [Bucket(hour=at, node="n1", queue=queue, model=A100, allocated=hours * HOUR) for queue, hours, at in held], {}
    )
    history = [event("nlp"), event("nlp-dev"), event("cv")]
    reports = ReportService(rig.recorder, lambda _: history, now=rig.clock.time, prices=PRICES)
    made = reports.team(team, WEEK, "UTC")
    assert made.report.total.allocated_hours * HOUR == seconds
    assert made.report.total.cost == cost
    assert [row.name for row in made.report.rows] == queues
    assert sum(incident.fired for incident in made.report.incidents) == alerts
    whole = reports.report(WEEK, "queue")
    assert [row for row in whole.rows if row.name in queues] == list(made.report.rows)  # one source of the figures
    rig.store.close()


def test_hours_that_are_not_saved_yet_count(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    reports = ReportService(rig.recorder, lambda _: (), now=rig.clock.time)
    rig.recorder.record()
    rig.pass_time(50)
    made = reports.team("nlp", WEEK, "UTC")
    assert made.report.total.allocated_hours * HOUR == pytest.approx(50.0)
    assert made.report.total == reports.report(WEEK, "queue").total
    rig.store.close()
