"""Cleanup plans and runs in the terminal."""

from __future__ import annotations

from monitor.cleanup.journal_records import CleanupRun, RunState
from monitor.present.cleanup import ShownPlan, ShownRun, history_table, plan_tables

AT = 1_763_262_000.0  # 2025-11-16 03:00:00 UTC


def test_the_next_run_is_in_the_time_zone_of_the_configuration() -> None:
    nightly = ShownPlan(policy="nightly", kind="pods", mode="dry-run", at=AT, next_run_at=AT + 16 * 3600)
    marks = ShownPlan(policy="marks", kind="images", mode="dry-run", at=AT)
    first, second = plan_tables((nightly, marks), "Asia/Shanghai")
    assert first.title == "nightly (pods, dry-run): 0 items, 0 B; next run 2025-11-17 03:00 CST"
    assert second.title == "marks (images, dry-run): 0 items, 0 B"


def test_runs_are_in_the_time_zone_of_the_configuration() -> None:
    run = CleanupRun(
        id="r", policy="nightly", kind="pods", mode="enforce", trigger="cron", started_at=AT, state=RunState.ENDED
    )
    table = history_table((ShownRun(run=run),), "Asia/Shanghai")
    assert (table.columns[0], table.rows[0][0]) == ("WHEN (Asia/Shanghai)", "2025-11-16 11:00:00")
