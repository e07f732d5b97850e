"""What of all candidates goes into a plan: in order, down to the mark, within the caps. Pure.

What an item is sure to free counts towards the mark, what it may free at most towards the cap: so a plan neither ends
too early nor grows too large. The executor looks at the disk after each item and stops earlier where it can.
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
    """A protection, as a word, and by what it is known."""

    protection: str
    detail: str | None = None

    def kept(self, name: str, node: str | None, size: int | None = None) -> KeptItem:
        """Return that a thing of this name is kept because of it."""
        return KeptItem(name=name, protection=self.protection, detail=self.detail, node=node, bytes=size)


@dataclass(frozen=True)
class Candidate:
    """An item that nothing protects. `at_most` is what it may free; None if that is not known.

    `frees` is asked when it is taken, if what it is sure to free depends on what was taken before it.
    """

    item: Item
    at_most: int | None = None
    frees: Callable[[], int | None] | None = None

    def take(self) -> Item:
        """Return the item as it stands in a plan that has taken it."""
        return self.item if self.frees is None else msgspec.structs.replace(self.item, frees_bytes=self.frees())


@dataclass(frozen=True)
class PlanSubject:
    """What a plan is about."""

    policy: CleanupPolicy
    now: float
    node: str | None = None
    needed_bytes: int | None = None


@dataclass
class Selection:
    """A plan that grows."""

    caps: Caps
    items: list[Item] = field(default_factory=list)
    capped_by: str | None = None
    _at_most: int = 0

    def add(self, candidates: Iterable[Candidate], needed: int | None) -> int:
        """Take candidates until they are sure to free what is needed (None: all); return what they are sure to free.

        One that alone is over the cap of bytes does not keep those behind it from their turn.
        """
        sure = 0
        for candidate in candidates:
            if needed is not None and sure >= needed:
                break
            if len(self.items) >= self.caps.items:
                self.capped_by = "items"
                break
            if not self._fits(candidate):
                self.capped_by = "bytes"
                continue
            item = candidate.take()
            self.items.append(item)
            self._at_most += candidate.at_most or 0
            sure += item.frees_bytes or 0
        return sure

    def _fits(self, candidate: Candidate) -> bool:
        if self.caps.bytes is None:
            return True
        return candidate.at_most is not None and self._at_most + candidate.at_most <= self.caps.bytes


def skip_refused(candidates: Iterable[Candidate], refused: frozenset[str], kept: list[KeptItem]) -> Iterator[Candidate]:
    """Given ids that were refused lately where they live, yield the other candidates; those refused are kept.

    Without this, the oldest image, refused each time, would be the only one that each plan has.
    """
    for candidate in candidates:
        item = candidate.item
        if item.id in refused:
            kept.append(KeptItem(name=item.name, protection="refused-lately", node=item.node, bytes=candidate.at_most))
        else:
            yield candidate


def make_plan(subject: PlanSubject, selection: Selection, kept: Iterable[KeptItem]) -> CleanupPlan:
    """Return the plan. Of what is kept, the largest are shown and all are counted."""
    everything = sorted(kept, key=lambda each: (-(each.bytes or 0), each.name))
    return msgspec.structs.replace(
        _empty(subject),
        items=tuple(selection.items),
        kept=tuple(everything[:MAX_KEPT_ITEMS]),
        kept_counts=dict(sorted(Counter(each.protection for each in everything).items())),
        needed_bytes=subject.needed_bytes,
        capped_by=selection.capped_by,
    )


def refuse(subject: PlanSubject, why: str, **values: str | int | float) -> CleanupPlan:
    """Return that there is no plan, and why: what is not known is never taken for permission."""
    return msgspec.structs.replace(_empty(subject), refused=Text(key=f"cleanup.refused.{why}", values=values))


def _empty(subject: PlanSubject) -> CleanupPlan:
    policy = subject.policy
    mark = hashlib.sha256(f"{policy.name} {subject.node} {subject.now!r}".encode()).hexdigest()[:12]
    return CleanupPlan(
        id=f"plan-{mark}", policy=policy.name, kind=policy.kind, mode=policy.mode, at=subject.now, node=subject.node
    )
