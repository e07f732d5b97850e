"""Cleanup plans and runs for display: view models of API and page, and tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from monitor.base.localtime import local_minute, local_seconds
from monitor.base.units import format_duration, format_size
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry
from monitor.cleanup.model import CleanupPlan, Item, KeptItem
from monitor.facts.base import Fact
from monitor.i18n import CATALOGS
from monitor.i18n.notes import sentence
from monitor.present.table import Rows, TextTable, make_table

MAX_ROWS = 200


class ShownItem(Fact, frozen=True, kw_only=True):
    """An item of a plan, in one language."""

    id: str
    name: str
    why: str
    risk: str
    node: str | None = None
    owner: str | None = None
    frees_bytes: int | None = None
    last_used_at: float | None = None
    not_before: float | None = None


class ShownPlan(Fact, frozen=True, kw_only=True):
    """A plan in one language. `refused` is the reason why nothing can be planned, `warnings` concern the policy."""

    policy: str
    kind: str
    mode: str
    at: float
    node: str | None = None
    items: tuple[ShownItem, ...] = ()
    kept: tuple[KeptItem, ...] = ()
    kept_counts: dict[str, int] = msgspec.field(default_factory=dict)
    needed_bytes: int | None = None
    frees_bytes: int = 0
    capped_by: str | None = None
    refused: str | None = None
    warnings: tuple[str, ...] = ()
    next_run_at: float | None = None


class ShownRun(Fact, frozen=True, kw_only=True):
    """A run and its items."""

    run: CleanupRun
    items: tuple[JournalEntry, ...] = ()


def show_plan(plan: CleanupPlan, lang: str, next_run_at: float | None = None) -> ShownPlan:
    """A plan in one language, and when its policy runs next on schedule."""
    return ShownPlan(
        policy=plan.policy,
        kind=plan.kind,
        mode=plan.mode,
        at=plan.at,
        node=plan.node,
        items=tuple(_item(item, lang) for item in plan.items),
        kept=plan.kept,
        kept_counts=plan.kept_counts,
        needed_bytes=plan.needed_bytes,
        frees_bytes=plan.frees_bytes,
        capped_by=plan.capped_by,
        refused=sentence(plan.refused, lang) if plan.refused is not None else None,
        warnings=tuple(sentence(warning, lang) for warning in plan.warnings),
        next_run_at=next_run_at,
    )


def _item(item: Item, lang: str) -> ShownItem:
    return ShownItem(
        id=item.id,
        name=item.name,
        why=sentence(item.why, lang),
        risk=item.risk,
        node=item.node,
        owner=item.owner,
        frees_bytes=item.frees_bytes,
        last_used_at=item.last_used_at,
        not_before=item.not_before,
    )


def why_kept(protection: str, lang: str) -> str:
    """Why a plan keeps an item, as a sentence; the code of a protection that an older agent or journal names."""
    key = f"cleanup.kept.{protection}"
    return CATALOGS[lang].get(key, protection)


def plan_tables(plans: Iterable[ShownPlan], timezone: str = "UTC") -> list[TextTable]:
    """One table per plan."""
    tables = [_plan_table(plan, timezone) for plan in plans]
    return tables or [make_table("CLEANUP", "WHAT", [], "no policy is configured; add one to daemon.cleanup.policies")]


def _plan_table(plan: ShownPlan, timezone: str) -> TextTable:
    where = f" on {plan.node}" if plan.node else ""
    need = f", {format_size(plan.needed_bytes)} needed" if plan.needed_bytes is not None else ""
    kept = ", ".join(f"{count} {protection}" for protection, count in plan.kept_counts.items())
    title = f"{plan.policy}{where} ({plan.kind}, {plan.mode}): {len(plan.items)} items"
    title += f", {format_size(plan.frees_bytes)}{need}" + (f"; kept: {kept}" if kept else "")
    title += f"; next run {local_minute(plan.next_run_at, timezone)}" if plan.next_run_at is not None else ""
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
        for item in plan.items[:MAX_ROWS]
    ]
    return make_table(title, "WHAT|OWNER|FREES|RISK|WHEN|WHY", rows, plan.refused or "nothing to do")


def history_table(runs: Iterable[ShownRun], timezone: str = "UTC") -> TextTable:
    """Runs, newest first, with the number of items in each state."""
    rows: Rows = []
    for shown in runs:
        run, states = shown.run, [item.state for item in shown.items]
        rows.append(
            (
                local_seconds(run.started_at, timezone),
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
    columns = f"WHEN ({timezone})|POLICY|NODE|TRIGGER|END|DONE|LEFT|FAILED|FREED"
    return make_table("CLEANUP RUNS", columns, rows, "nothing has run yet")


def items_table(shown: ShownRun) -> TextTable:
    """Items of a run with their outcomes."""
    rows: Rows = [
        (
            entry.item.name,
            entry.state.value,
            entry.outcome or "-",
            _size(entry.freed_bytes),
            entry.trash or "-",
            entry.message or "",
        )
        for entry in shown.items[:MAX_ROWS]
    ]
    title = f"{shown.run.policy}: {shown.run.end or shown.run.state}"
    return make_table(title, "WHAT|STATE|OUTCOME|FREED|TRASH ID|MESSAGE", rows, "nothing was done")


def _size(size: int | None) -> str:
    return "?" if size is None else format_size(size)


def _when(not_before: float | None, now: float) -> str:
    if not_before is None:
        return "after notice"
    return "now" if not_before <= now else f"in {format_duration(not_before - now)}"
