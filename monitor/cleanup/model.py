"""Cleanup plans. Stored in the journal as JSON."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from monitor.facts.actions import AnyAction
from monitor.facts.base import Fact
from monitor.facts.text import Text


class Mode(StrEnum):
    """Whether a policy only reports what it would do."""

    DRY_RUN = "dry-run"
    ENFORCE = "enforce"


class Risk(StrEnum):
    """What a wrong item costs: time (low), a restore (medium), data or work (high)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class PodWrite(Fact, frozen=True, kw_only=True, tag_field="kind", tag="pod"):
    """Deletion of a pod. `how` is delete, evict or force; the pod must still have this `uid`."""

    namespace: str
    name: str
    uid: str
    how: str


class RegistryWrite(Fact, frozen=True, kw_only=True, tag_field="kind", tag="registry"):
    """A job of a Harbor registry. `what` is retention or gc; a dry run changes nothing."""

    registry: str
    what: str
    dry_run: bool
    retention: int | None = None


class Item(Fact, frozen=True, kw_only=True):
    """One step of a plan. `id` is the same in every plan that contains the step."""

    id: str
    name: str
    why: Text
    risk: Risk
    node: str | None = None
    owner: str | None = None
    frees_bytes: int | None = None
    last_used_at: float | None = None
    not_before: float | None = None  # end of the owner's notice period; None: the owner was not notified yet
    act: AnyAction | PodWrite | RegistryWrite


class KeptItem(Fact, frozen=True, kw_only=True):
    """Something that a plan leaves alone, and its protection: in-use, pinned, ..."""

    name: str
    protection: str
    node: str | None = None
    bytes: int | None = None
    detail: str | None = None
    until: float | None = None


class CleanupPlan(Fact, frozen=True, kw_only=True):
    """What a policy would do now on one node, or in the whole cluster, in order of execution.

    `needed_bytes` have to be freed to reach the low-water mark; None if there is no mark. `kept` lists the largest kept
    items, `kept_counts` counts all by protection. `refused` is the reason why nothing can be planned, `warnings` are
    problems of the policy on this node.
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
    capped_by: str | None = None  # the cap that limited the plan: items or bytes
    refused: Text | None = None
    warnings: tuple[Text, ...] = ()

    @property
    def frees_bytes(self) -> int:
        """Sum of the known sizes."""
        return sum(item.frees_bytes or 0 for item in self.items)
