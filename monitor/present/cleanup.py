"""Cleanup plans and runs for display: view models of API and page, and tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from monitor.base.localtime import local_minute, local_seconds
from monitor.base.units import format_size
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry
from monitor.cleanup.model import CleanupPlan, Item, KeptItem
from monitor.facts.base import Fact
from monitor.i18n import CATALOGS
from monitor.i18n.figures import brief_duration
from monitor.i18n.notes import sentence
from monitor.present.table import Rows, TextTable, make_table, page_word, table_list, table_text

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


def plan_tables(plans: Iterable[ShownPlan], timezone: str = "UTC", lang: str = "en") -> list[TextTable]:
    """One table per plan."""
    tables = [_plan_table(plan, timezone, lang) for plan in plans]
    return tables or [make_table("CLEANUP", "WHAT", [], "no policy is configured; add one to daemon.cleanup.policies")]


def _plan_title(plan: ShownPlan, timezone: str, lang: str) -> str:
    """What a plan is about, what it frees and keeps, and when it runs next."""
    title = table_text(
        lang, "plan-on-node" if plan.node else "plan", policy=plan.policy, node=plan.node or "",
        kind=page_word(lang, "cleanup.kind", plan.kind), mode=page_word(lang, "cleanup.mode", plan.mode),
        items=len(plan.items), size=format_size(plan.frees_bytes),
    )  # fmt: skip
    if plan.needed_bytes is not None:
        title = table_text(lang, "plan-needed", plan=title, size=format_size(plan.needed_bytes))
    if plan.kept_counts:
        counts = plan.kept_counts.items()
        kept = (
            table_text(lang, "kept", count=count, why=page_word(lang, "cleanup.kept", why)) for why, count in counts
        )
        title = table_text(lang, "plan-kept", plan=title, kept=table_list(lang, kept))
    if plan.next_run_at is not None:
        title = table_text(lang, "plan-next", plan=title, at=local_minute(plan.next_run_at, timezone))
    for warning in plan.warnings:
        title = table_text(lang, "plan-warning", plan=title, warning=warning)
    return title


def _plan_table(plan: ShownPlan, timezone: str, lang: str) -> TextTable:
    rows: Rows = [
        (
            item.name,
            item.owner or "-",
            _size(item.frees_bytes),
            item.risk if lang == "en" else CATALOGS[lang].get(f"cleanup.risk.{item.risk}", item.risk),
            _when(item.not_before, plan.at, lang),
            item.why,
        )
        for item in plan.items[:MAX_ROWS]
    ]
    title = _plan_title(plan, timezone, lang)
    return make_table(title, "WHAT|OWNER|FREES|RISK|WHEN|WHY", rows, plan.refused or "nothing to do")


def history_table(runs: Iterable[ShownRun], timezone: str = "UTC", lang: str = "en") -> TextTable:
    """Runs, newest first, with the number of items in each state."""
    rows: Rows = []
    for shown in runs:
        run, states = shown.run, [item.state for item in shown.items]
        rows.append(
            (
                local_seconds(run.started_at, timezone),
                run.policy,
                run.node or "-",
                _trigger(run, lang),
                _end(run, lang),
                str(states.count(ItemState.DONE)),
                str(states.count(ItemState.REFUSED) + states.count(ItemState.LATER)),
                str(states.count(ItemState.FAILED)),
                format_size(run.freed_bytes),
            )
        )
    columns = f"{table_text(lang, 'when-zone', zone=timezone)}|POLICY|NODE|TRIGGER|END|DONE|LEFT|FAILED|FREED"
    return make_table("CLEANUP RUNS", columns, rows, "nothing has run yet")


def _trigger(run: CleanupRun, lang: str) -> str:
    """What started a run, and who."""
    trigger = page_word(lang, "cleanup.trigger", run.trigger)
    return trigger if run.by is None else table_text(lang, "by", trigger=trigger, user=run.by)


def _end(run: CleanupRun, lang: str) -> str:
    """Why a run ended, or its state."""
    return page_word(lang, "cleanup.end", run.end or run.state.value)


def items_table(shown: ShownRun, lang: str = "en") -> TextTable:
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
    title = f"{shown.run.policy}: {_end(shown.run, lang)}"
    return make_table(title, "WHAT|STATE|OUTCOME|FREED|TRASH ID|MESSAGE", rows, "nothing was done")


def _size(size: int | None) -> str:
    return "?" if size is None else format_size(size)


def _when(not_before: float | None, now: float, lang: str) -> str:
    if not_before is None:
        return table_text(lang, "after-notice")
    return (
        table_text(lang, "now")
        if not_before <= now
        else table_text(lang, "in", time=brief_duration(not_before - now, lang))
    )
