"""Planned cleanup by owner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from monitor.present.cleanup import ShownItem, ShownPlan


@dataclass(frozen=True)
class OwnerShare:
    """What cleanup would remove of one owner, and the earliest time."""

    owner: str | None
    items: int
    bytes: int
    earliest: float | None


def owner_shares(plans: Iterable[ShownPlan]) -> list[OwnerShare]:
    """What cleanup would remove by owner, largest first."""
    owned: dict[str | None, list[ShownItem]] = {}
    for plan in plans:
        for item in plan.items:
            owned.setdefault(item.owner, []).append(item)
    shares = [
        OwnerShare(
            owner,
            len(items),
            sum(item.frees_bytes or 0 for item in items),
            min((item.not_before for item in items if item.not_before is not None), default=None),
        )
        for owner, items in owned.items()
    ]
    return sorted(shares, key=lambda share: (-share.bytes, -share.items))
