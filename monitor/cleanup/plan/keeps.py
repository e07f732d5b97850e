"""What owners asked cleanup to keep, until when and why. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

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


class AnswerKind(StrEnum):
    """What an owner does about an item of a notice."""

    KEEP = "keep"
    RELEASE = "release"


class Answer(Fact, frozen=True, kw_only=True):
    """What a link was used for: a kind of answer, about the item of this name, at a time."""

    kind: AnswerKind = AnswerKind.KEEP
    name: str | None = None
    at: float | None = None


Keeps = Mapping[str, Keep]  # by item


def keep_protection(keeps: Keeps, item: str, now: float) -> Protection | None:
    """The protection of an item that its owner keeps."""
    keep = keeps.get(item)
    if keep is None or now >= keep.until:
        return None
    return Protection(KEPT, f"{keep.owner}: {keep.reason}" if keep.reason else keep.owner, keep.until)
