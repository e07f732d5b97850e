"""Plans and runs in words, for the API and the command line. Pure."""

from __future__ import annotations

import msgspec

from monitor.cleanup.journal import CleanupRun, JournalEntry
from monitor.cleanup.model import CleanupPlan, Item, KeptItem
from monitor.facts.base import Fact
from monitor.i18n.notes import sentence


class ShownItem(Fact, frozen=True, kw_only=True):
    """One thing that would be done, and why."""

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
    """A plan in one language. `refused` says why there is none; `warnings` what is wrong with its policy."""

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


class ShownRun(Fact, frozen=True, kw_only=True):
    """A run, and what became of each thing that it set out to do."""

    run: CleanupRun
    items: tuple[JournalEntry, ...] = ()


def show_plan(plan: CleanupPlan, lang: str) -> ShownPlan:
    """Given a plan, return it in words."""
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
        warnings=tuple(sentence(note, lang) for note in plan.warnings),
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
