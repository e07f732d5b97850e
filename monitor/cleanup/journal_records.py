"""Records of the journal of cleanup: runs, and their items with outcomes."""

from __future__ import annotations

from enum import StrEnum

from monitor.cleanup.model import Item
from monitor.facts.base import Fact


class RunState(StrEnum):
    """State of a run."""

    PLANNED = "planned"  # recorded only, never executed
    RUNNING = "running"
    ENDED = "ended"


class ItemState(StrEnum):
    """State of an item."""

    PLANNED = "planned"
    INTENDED = "intended"  # requested, or about to be
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    LATER = "later"  # not done; another run retries it


class CleanupRun(Fact, frozen=True, kw_only=True):
    """One run of a policy on a node, or in the whole cluster.

    `trigger` is cron, made-up, high-water, resumed, asked or release; `by` is the requesting user. `end` is done,
    low-water, minutes, bytes, errors, stopped or interrupted; dry-run, announced, waiting or refused if nothing was
    done. `before` and `after` are the used shares of the disk.
    """

    id: str
    policy: str
    kind: str
    mode: str
    trigger: str
    started_at: float
    state: RunState
    node: str | None = None
    by: str | None = None
    ended_at: float | None = None
    end: str | None = None
    freed_bytes: int = 0
    before: float | None = None
    after: float | None = None


class JournalEntry(Fact, frozen=True, kw_only=True):
    """One item of a run and its outcome. `request` is the id under which it was requested."""

    item: Item
    place: int
    state: ItemState = ItemState.PLANNED
    request: str | None = None
    intended_at: float | None = None
    ended_at: float | None = None
    outcome: str | None = None
    message: str | None = None
    freed_bytes: int | None = None
    trash: str | None = None
