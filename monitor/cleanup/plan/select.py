"""Selection of candidates for a plan: in order, down to the low-water mark, within the caps.

The guaranteed size of an item counts towards the mark and its maximum size towards the cap, so a plan neither ends too
early nor grows too large. The executor measures the disk after each item and stops earlier if it can.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from monitor.cleanup.model import CleanupPlan, Item, KeptItem
from monitor.cleanup.policy import Caps, CleanupPolicy
from monitor.facts.text import Text

MAX_KEPT_ITEMS = 200


@dataclass(frozen=True)
class Protection:
    """Why a plan leaves something alone: a code, the pattern, pod, node or owner behind it, perhaps an end."""

    protection: str
    detail: str | None = None
    until: float | None = None

    def kept_item(self, name: str, node: str | None, size: int | None = None) -> KeptItem:
        return KeptItem(
            name=name, protection=self.protection, detail=self.detail, node=node, bytes=size, until=self.until
        )


@dataclass(frozen=True)
class Candidate:
    """An unprotected item. `max_bytes` is the most that it may free; None if unknown.

    `frees` is called when the item is taken, for sizes that depend on the items taken before it.
    """

    item: Item
    max_bytes: int | None = None
    frees: Callable[[], int | None] | None = None

    def take(self) -> Item:
        """The item with its final size."""
        return self.item if self.frees is None else msgspec.structs.replace(self.item, frees_bytes=self.frees())


@dataclass(frozen=True)
class PlanSubject:
    """Policy and node that a plan is made for."""

    policy: CleanupPolicy
    now: float
    node: str | None = None
    needed_bytes: int | None = None


@dataclass
class Selection:
    """The items taken so far."""

    caps: Caps
    items: list[Item] = field(default_factory=list)
    capped_by: str | None = None
    _max_bytes: int = 0

    def add(self, candidates: Iterable[Candidate], needed: int | None) -> int:
        """Take candidates until `needed` bytes are guaranteed to be freed (None: all); return the guaranteed bytes.

        A candidate that exceeds the byte cap is skipped, not the candidates behind it.
        """
        guaranteed = 0
        for candidate in candidates:
            if needed is not None and guaranteed >= needed:
                break
            if len(self.items) >= self.caps.items:
                self.capped_by = "items"
                break
            if not self._fits(candidate):
                self.capped_by = "bytes"
                continue
            item = candidate.take()
            self.items.append(item)
            self._max_bytes += candidate.max_bytes or 0
            guaranteed += item.frees_bytes or 0
        return guaranteed

    def _fits(self, candidate: Candidate) -> bool:
        if self.caps.bytes is None:
            return True
        return candidate.max_bytes is not None and self._max_bytes + candidate.max_bytes <= self.caps.bytes


def skip_refused(candidates: Iterable[Candidate], refused: frozenset[str], kept: list[KeptItem]) -> Iterator[Candidate]:
    """Candidates that no agent refused lately; the refused ones are added to `kept`.

    Otherwise every plan would begin with the same oldest image, and be refused again.
    """
    for candidate in candidates:
        item = candidate.item
        if item.id in refused:
            kept.append(
                KeptItem(name=item.name, protection="refused-lately", node=item.node, bytes=candidate.max_bytes)
            )
        else:
            yield candidate


def make_plan(subject: PlanSubject, selection: Selection, kept: Iterable[KeptItem]) -> CleanupPlan:
    """The plan of a selection. It counts all kept items and lists the largest."""
    all_kept = sorted(kept, key=lambda item: (-(item.bytes or 0), item.name))
    return msgspec.structs.replace(
        _empty(subject),
        items=tuple(selection.items),
        kept=tuple(all_kept[:MAX_KEPT_ITEMS]),
        kept_counts=dict(sorted(Counter(item.protection for item in all_kept).items())),
        needed_bytes=subject.needed_bytes,
        capped_by=selection.capped_by,
    )


def refuse(subject: PlanSubject, why: str, **values: str | int | float) -> CleanupPlan:
    """An empty plan, with the reason why nothing can be planned."""
    return msgspec.structs.replace(_empty(subject), refused=Text(key=f"cleanup.refused.{why}", values=values))


def _empty(subject: PlanSubject) -> CleanupPlan:
    policy = subject.policy
    digest = hashlib.sha256(f"{policy.name} {subject.node} {subject.now!r}".encode()).hexdigest()[:12]
    return CleanupPlan(
        id=f"plan-{digest}", policy=policy.name, kind=policy.kind, mode=policy.mode, at=subject.now, node=subject.node
    )
