"""Rows and totals of a report."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from monitor.report.buckets import DAY, By
from monitor.report.model import IncidentCount, ReportInputs, ReportRow, make_report
from tests.report.reports import EVIL, GIB, SINCE, UNTIL, fired, report, resolved

ROWS: list[tuple[By, str | None, dict[str, object]]] = [
    ("user", "zhang", {
        "allocated_hours": 912.5, "used_hours": 710.25, "idle_hours": 40.0, "zombie_hours": 12.0, "wasted_hours": 52.0,
        "utilization_ratio": 710.25 / 892.5, "disk_bytes": 35 * GIB, "cleaned_bytes": 0,
    }),
    ("user", "li", {
        "allocated_hours": 400.0, "used_hours": 360.0, "utilization_ratio": 0.9, "disk_bytes": 900 * GIB,
        "cleaned_bytes": 20 * GIB,
    }),
    ("user", "wang", {
        "allocated_hours": 168.0, "idle_hours": 168.0, "wasted_hours": 168.0, "utilization_ratio": 0.0,
        "cleaned_bytes": 0,
    }),
    ("user", "zhao", {"allocated_hours": 50.0, "used_hours": None, "cleaned_bytes": 0}),
    ("user", None, {
        "zombie_hours": 3.0, "wasted_hours": 3.0, "faulty_hours": 168.0, "free_hours": 1600.0, "unknown_hours": 4.0,
        "disk_bytes": 400 * GIB, "cleaned_bytes": 120 * GIB,
    }),
    ("queue", "cv", {"allocated_hours": 460.0, "used_hours": 390.0, "utilization_ratio": 390 / 460}),
    ("node", "gpu03", {
        "allocated_hours": 279.5, "used_hours": 31.0, "idle_hours": 168.0, "wasted_hours": 168.0, "faulty_hours": 168.0,
        "free_hours": 700.0, "utilization_ratio": 31 / 229.5, "cleaned_bytes": 0,
    }),
    ("node", "nas-01", {"disk_bytes": 900 * GIB, "cleaned_bytes": 20 * GIB}),
]  # fmt: skip


@pytest.mark.parametrize(("by", "name", "expect"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_a_row(by: By, name: str | None, expect: dict[str, Any]) -> None:
    (row,) = [row for row in report(by).rows if row.name == name]
    wanted = ReportRow(name=name, **expect)
    assert {field: getattr(row, field) for field in ReportRow.__struct_fields__} == {
        field: pytest.approx(getattr(wanted, field)) for field in ReportRow.__struct_fields__
    }


@pytest.mark.parametrize("by", get_args(By))
def test_the_rows_add_up_to_the_total_and_that_is_the_same_by_whatever(by: By) -> None:
    made, other = report(by), report("node")
    for field in (field for field in ReportRow.__struct_fields__ if field.endswith("_hours")):
        assert sum(getattr(row, field) or 0.0 for row in made.rows) == pytest.approx(getattr(made.total, field)), field
    assert made.total == other.total
    assert made.total.hours == pytest.approx(3379.0)
    assert (made.total.disk_bytes, made.total.cleaned_bytes) == (1335 * GIB, 140 * GIB)


def test_who_had_most_comes_first_and_nobody_last() -> None:
    assert [row.name for row in report().rows] == ["zhang", "li", "wang", "chen", "zhao", EVIL, None]


def test_incidents_by_cause() -> None:
    made = report()
    assert made.incidents == (
        IncidentCount(rule="disk-full", cause="images", fired=2, resolved=2, mean_seconds=900.0),
        IncidentCount(rule="gpu-zombie", cause="pod-finished", fired=1, resolved=0),
        IncidentCount(rule="node-down", cause="silent", fired=0, resolved=1, mean_seconds=7200.0),
    )
    assert made.incidents_since == SINCE


def test_symptoms_are_no_incidents() -> None:
    events = [fired("r", "c", 5.0, explained_by="x"), resolved("r", "c", 6.0, 1.0, explained_by="x")]
    assert make_report(ReportInputs(events=events), 0.0, 10.0, "user").incidents == ()


@pytest.mark.parametrize(("kept", "expect"), [(0.0, SINCE), (SINCE - DAY, SINCE), (UNTIL - DAY, UNTIL - DAY)])
def test_from_when_on_it_is_known_what_was_cleaned_up(kept: float, expect: float) -> None:
    assert make_report(ReportInputs(cleaned=(), cleaned_since=kept), SINCE, UNTIL, "user").cleaned_since == expect


def test_alerts_that_are_forgotten_are_said_to_be() -> None:
    inputs = ReportInputs(events_since=UNTIL - DAY)
    assert make_report(inputs, SINCE, UNTIL, "user").incidents_since == UNTIL - DAY


def test_without_cleanup_nothing_is_said_about_it() -> None:
    made = report(cleaned=None)
    assert {row.cleaned_bytes for row in (*made.rows, made.total)} == {None}
    assert {row.cleaned_bytes for row in report("queue").rows} == {None}


def test_of_nothing() -> None:
    made = make_report(ReportInputs(), 0.0, 3600.0, "user")
    assert (made.rows, made.total, made.incidents) == ((), ReportRow(name=None), ())
