"""Plans and runs of cleanup as tables for the terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.base.units import format_duration, format_size, utc_timestamp
from monitor.cleanup.journal import ItemState
from monitor.cleanup.shown import ShownPlan, ShownRun
from monitor.present.table import Rows, TextTable, make_table

SHOWN = 200


def plan_tables(plans: Iterable[ShownPlan]) -> list[TextTable]:
    """Given plans, return one table for each: what would go, and below it what stays."""
    tables = [_plan_table(plan) for plan in plans]
    return tables or [make_table("CLEANUP", "WHAT", [], "no policy is configured; add one to daemon.cleanup.policies")]


def _plan_table(plan: ShownPlan) -> TextTable:
    where = f" on {plan.node}" if plan.node else ""
    need = f", {format_size(plan.needed_bytes)} needed" if plan.needed_bytes is not None else ""
    kept = ", ".join(f"{count} {protection}" for protection, count in plan.kept_counts.items())
    title = f"{plan.policy}{where} ({plan.kind}, {plan.mode}): {len(plan.items)} items"
    title += f", {format_size(plan.frees_bytes)}{need}" + (f"; kept: {kept}" if kept else "")
    title += "".join(f"; {warning}" for warning in plan.warnings)
    rows: Rows = [
        (
            item.name,
            item.owner or "-",
            _size(item.frees_bytes),
            item.risk,
            _when(item.not_before, plan.at),
            item.why,
        )
        for item in plan.items[:SHOWN]
    ]
    return make_table(title, "WHAT|OWNER|FREES|RISK|WHEN|WHY", rows, plan.refused or "nothing to do")


def history_table(runs: Iterable[ShownRun]) -> TextTable:
    """Given runs, return them, the latest first, each with what became of its items."""
    rows: Rows = []
    for shown in runs:
        run, states = shown.run, [item.state for item in shown.items]
        rows.append(
            (
                utc_timestamp(run.started_at),
                run.policy,
                run.node or "-",
                run.trigger if run.by is None else f"{run.trigger} by {run.by}",
                run.end or run.state,
                str(states.count(ItemState.DONE)),
                str(states.count(ItemState.REFUSED) + states.count(ItemState.LATER)),
                str(states.count(ItemState.FAILED)),
                format_size(run.freed_bytes),
            )
        )
    columns = "WHEN (UTC)|POLICY|NODE|TRIGGER|END|DONE|LEFT|FAILED|FREED"
    return make_table("CLEANUP RUNS", columns, rows, "nothing was run yet")


def items_table(shown: ShownRun) -> TextTable:
    """Given a run, return what became of each item."""
    rows: Rows = [
        (
            each.item.name,
            each.state.value,
            each.outcome or "-",
            _size(each.freed_bytes),
            each.trash or "-",
            each.message or "",
        )
        for each in shown.items[:SHOWN]
    ]
    title = f"{shown.run.policy}: {shown.run.end or shown.run.state}"
    return make_table(title, "WHAT|STATE|OUTCOME|FREED|TRASH ID|MESSAGE", rows, "nothing was done")


def _size(size: int | None) -> str:
    return "?" if size is None else format_size(size)


def _when(not_before: float | None, now: float) -> str:
    if not_before is None:
        return "after notice"
    return "now" if not_before <= now else f"in {format_duration(not_before - now)}"
