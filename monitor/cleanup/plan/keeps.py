"""What owners asked cleanup to keep, until when and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from monitor.cleanup.plan.select import Protection
from monitor.facts.base import Fact

KEPT = "kept"


class Keep(Fact, frozen=True, kw_only=True):
    """An item that no policy touches before `until`, by its id. `policy` had announced it to the owner."""

    item: str
    name: str
    policy: str
    owner: str
    at: float
    until: float
    reason: str = ""


Keeps = Mapping[str, Keep]  # by item


def keep_protection(keeps: Keeps, item: str, now: float) -> Protection | None:
    """The protection of an item that its owner keeps."""
    keep = keeps.get(item)
    if keep is None or now >= keep.until:
        return None
    return Protection(KEPT, f"{keep.owner}: {keep.reason}" if keep.reason else keep.owner, keep.until)
