"""What a cleanup plan is made of. Kept in the journal as JSON."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from monitor.facts.actions import AnyAction
from monitor.facts.base import Fact
from monitor.facts.text import Text


class Mode(StrEnum):
    """Whether a policy only says what it would do."""

    DRY_RUN = "dry-run"
    ENFORCE = "enforce"


class Risk(StrEnum):
    """What is lost if the plan was wrong: nothing but time, something that can be restored, something for good."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class PodWrite(Fact, frozen=True, kw_only=True, tag_field="kind", tag="pod"):
    """Something to do to a pod by the API server. `how` is delete, evict or force; `uid` has to be the same still."""

    namespace: str
    name: str
    uid: str
    how: str


class RegistryWrite(Fact, frozen=True, kw_only=True, tag_field="kind", tag="registry"):
    """Something to have a Harbor do. `what` is retention or gc; a dry run changes nothing there."""

    registry: str
    what: str
    dry_run: bool
    retention: int | None = None


class Item(Fact, frozen=True, kw_only=True):
    """One thing that a plan would do. `id` is the same in every plan that has it."""

    id: str
    name: str
    why: Text
    risk: Risk
    node: str | None = None
    owner: str | None = None
    frees_bytes: int | None = None
    last_used_at: float | None = None
    not_before: float | None = None  # the owner was or will be told; it is not touched before
    act: AnyAction | PodWrite | RegistryWrite


class KeptItem(Fact, frozen=True, kw_only=True):
    """One thing that a plan leaves alone, and the protection that covers it, as a word: in-use, pinned, ..."""

    name: str
    protection: str
    node: str | None = None
    bytes: int | None = None
    detail: str | None = None


class CleanupPlan(Fact, frozen=True, kw_only=True):
    """What a policy would do now, on one node or in the whole cluster, in the order in which it would be done.

    `needed_bytes` is what has to be freed to reach the low-water mark; None where there is no mark. `kept` are the
    first so many of what was left alone; `kept_counts` counts all by protection. `refused` says why there is no plan,
    `warnings` what is wrong with its policy there.
    """

    id: str
    policy: str
    kind: str
    mode: Mode
    at: float
    node: str | None = None
    items: tuple[Item, ...] = ()
    kept: tuple[KeptItem, ...] = ()
    kept_counts: dict[str, int] = msgspec.field(default_factory=dict)
    needed_bytes: int | None = None
    capped_by: str | None = None  # items, bytes: what stopped the plan from growing
    refused: Text | None = None
    warnings: tuple[Text, ...] = ()

    @property
    def frees_bytes(self) -> int:
        """Return what it frees, as far as that is known."""
        return sum(item.frees_bytes or 0 for item in self.items)
