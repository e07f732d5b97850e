"""Executes a plan item by item, journaled before and after each, until a stop condition applies.

Nothing is done twice: an item is requested under an id that is used once, and the outcome of an item that was in
progress when the process ended is queried by that id. A dry run requests nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from msgspec.structs import replace as changed

from monitor.cleanup.execute.disk_level import DiskLevel
from monitor.cleanup.journal import CleanupJournal, new_id
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry, RunState
from monitor.cleanup.model import CleanupPlan, Item, Risk
from monitor.cleanup.policy import Caps
from monitor.cleanup.schedule import LOW_WATER, is_ready
from monitor.facts.actions import PurgeTrash, TrashUnit
from monitor.leader.elector import MIN_TERM, LeaderElector, SingleReplica

log = logging.getLogger(__name__)
OVER_QUOTA = "cleanup.why.dataset-over-quota"
LEASE_LOST = "lease-lost"
STARTING = "starting"  # outcome of an agent: a pod that is starting may refer to any image
MAX_STARTING_WAIT_SECONDS = 120.0  # per run: twice the time for which an agent waits for a starting pod
STARTING_RETRY_SECONDS = 10.0


@dataclass(frozen=True)
class ItemOutcome:
    """Outcome of an item. `code` is for programs, `message` for people."""

    state: ItemState
    code: str
    message: str | None = None
    freed_bytes: int | None = None
    trash: str | None = None


class ShutdownError(Exception):
    """The daemon is stopping during a run; the next process recovers the run."""


class ItemExecutor(Protocol):
    """Executes items. Failures are outcomes, not exceptions."""

    def execute(self, run: CleanupRun, item: Item, request: str) -> ItemOutcome:
        """Execute an item under a new request id. Raise ShutdownError if the daemon stops before the item ends."""
        ...

    def recover(self, entry: JournalEntry) -> ItemOutcome:
        """Outcome of an item that a previous process requested, or was about to."""
        ...


@dataclass
class _RunProgress:
    run: CleanupRun
    caps: Caps
    items: int
    level: DiskLevel | None
    ends_at: float  # monotonic
    term: int  # leader term in which the run started
    failed: int = 0
    starting_until: float | None = None  # monotonic; set at the first outcome STARTING


class PlanRunner:
    """Executes plans, one run at a time per policy and node."""

    def __init__(
        self,
        journal: CleanupJournal,
        executor: ItemExecutor,
        stopping: threading.Event,
        now: Callable[[], float] = time.time,
        leading: LeaderElector | None = None,
        retry: float = STARTING_RETRY_SECONDS,
    ) -> None:
        self._retry = retry
        self._journal = journal
        self._executor = executor
        self._stopping = stopping
        self._now = now
        self._leading = leading or SingleReplica()
        self._left_open = journal.open_runs()
        self._busy: set[tuple[str, str | None]] = set()
        self._released = threading.Condition()

    def claim(self, policy: str, node: str | None, timeout: float = 0.0) -> bool:
        """Reserve a policy on a node until `release`; wait up to `timeout` seconds for a run in progress."""
        with self._released:
            if not self._released.wait_for(lambda: (policy, node) not in self._busy, timeout):
                return False
            self._busy.add((policy, node))
            return True

    def release(self, policy: str, node: str | None) -> None:
        with self._released:
            self._busy.discard((policy, node))
            self._released.notify_all()

    def record(self, run: CleanupRun, plan: CleanupPlan, end: str) -> CleanupRun:
        """Record a plan that is not executed, and why."""
        run = changed(run, state=RunState.PLANNED, end=end, ended_at=self._now())
        self._journal.begin(run, plan)
        return run

    def run(
        self, run: CleanupRun, plan: CleanupPlan, caps: Caps, level: DiskLevel | None, term: int = MIN_TERM
    ) -> CleanupRun:
        """Execute the items of a plan that are ready, and return the ended run, which the caller reports.

        The run ends with the leader term in which it started. Raise ShutdownError if the daemon stops before.
        """
        now = self._now()
        items = [item for item in plan.items if is_ready(item, now)]
        run = changed(run, before=level.share if level is not None else None)
        entries = self._journal.begin(run, plan, items)
        progress = _RunProgress(run, caps, len(entries), level, time.monotonic() + caps.minutes * 60, term)
        end = "done"
        for entry in entries:
            stop = self._stop_reason(progress, entry.item)
            if stop is not None:
                end = stop
                if stop == LEASE_LOST:
                    self._leave(progress, entries[entry.place :])
                break
            self._execute(progress, entry)
        if level is not None:
            level.settle()
            end = LOW_WATER if end == "done" and entries and level.reached() else end
            progress.run = changed(progress.run, after=level.share)
        return changed(progress.run, end=end, ended_at=self._now(), state=RunState.ENDED)

    def recover(self) -> tuple[CleanupRun, ...]:
        """Determine the outcome of all items that were in progress when the last process ended; return the runs."""
        runs = []
        for left_open in self._left_open:
            run = left_open
            for entry in self._journal.entries(run.id):
                if entry.state is ItemState.INTENDED:
                    run = self._ended(run, entry, self._executor.recover(entry))
            runs.append(changed(run, end="interrupted", ended_at=self._now(), state=RunState.ENDED))
        return tuple(runs)

    def _stop_reason(self, progress: _RunProgress, item: Item) -> str | None:
        caps, run = progress.caps, progress.run
        if self._stopping.is_set():
            raise ShutdownError
        if self._leading.term() != progress.term:
            return LEASE_LOST
        if time.monotonic() >= progress.ends_at:
            return "minutes"
        if caps.bytes is not None and run.freed_bytes >= caps.bytes:
            return "bytes"
        if progress.failed > caps.error_share * progress.items:
            return "errors"
        if progress.level is None or _is_unconditional(item):
            return None
        reached = progress.level.reached()
        if reached is None:
            return "unmeasured"
        return LOW_WATER if reached else None

    def _leave(self, progress: _RunProgress, entries: tuple[JournalEntry, ...]) -> None:
        """Record that items were left to another replica."""
        for entry in entries:
            progress.run = self._ended(progress.run, entry, ItemOutcome(ItemState.LATER, LEASE_LOST))

    def _execute(self, progress: _RunProgress, entry: JournalEntry) -> None:
        if self._journal.trouble is not None and entry.item.risk is not Risk.LOW:
            # An item that cannot be journaled is not executed; but images may be what fills the journal's disk.
            outcome = ItemOutcome(ItemState.FAILED, "not-journaled", self._journal.trouble)
        else:
            entry, outcome = self._request(progress, entry)
            while outcome.code == STARTING and self._wait_for_starting(progress):
                entry, outcome = self._request(progress, entry)
        progress.run = self._ended(progress.run, entry, outcome)
        progress.failed += outcome.state is ItemState.FAILED
        if progress.level is not None and outcome.state is ItemState.DONE:
            _update_level(progress.level, entry.item, outcome)

    def _request(self, progress: _RunProgress, entry: JournalEntry) -> tuple[JournalEntry, ItemOutcome]:
        """Execute an item under a new request id, which is journaled first."""
        request = new_id("act")
        entry = changed(entry, state=ItemState.INTENDED, request=request, intended_at=self._now())
        self._journal.write(progress.run, entry)
        return entry, self._executor.execute(progress.run, entry.item, request)

    def _wait_for_starting(self, progress: _RunProgress) -> bool:
        """Pause for starting pods; return whether to request the item again."""
        now = time.monotonic()
        if progress.starting_until is None:
            progress.starting_until = min(now + MAX_STARTING_WAIT_SECONDS, progress.ends_at)
        if now >= progress.starting_until:
            return False
        if self._stopping.wait(self._retry):
            raise ShutdownError
        return True

    def _ended(self, run: CleanupRun, entry: JournalEntry, outcome: ItemOutcome) -> CleanupRun:
        """Journal the outcome of an item; return the updated run."""
        run = changed(run, freed_bytes=run.freed_bytes + _freed_bytes(entry.item, outcome))
        entry = changed(
            entry,
            state=outcome.state,
            ended_at=self._now(),
            outcome=outcome.code,
            message=outcome.message,
            freed_bytes=outcome.freed_bytes,
            trash=outcome.trash,
        )
        self._journal.write(run, entry)
        detail = f" ({outcome.message})" if outcome.message else ""
        log.info("%s: %s %s: %s%s", run.policy, entry.item.name, outcome.state, outcome.code, detail)
        return run


def _is_unconditional(item: Item) -> bool:
    """Whether an item is due however full the disk is: over quota, or past its grace period in the trash."""
    return isinstance(item.act, PurgeTrash) or item.why.key == OVER_QUOTA


def _freed_bytes(item: Item, outcome: ItemOutcome) -> int:
    """Bytes that count as freed; for a unit moved into the trash, its size."""
    if outcome.state is not ItemState.DONE:
        return 0
    if outcome.freed_bytes is None and isinstance(item.act, TrashUnit):
        return item.frees_bytes or 0
    return outcome.freed_bytes or 0


def _update_level(level: DiskLevel, item: Item, outcome: ItemOutcome) -> None:
    if isinstance(item.act, TrashUnit):
        level.record_trashed(item.frees_bytes or 0)
        return
    level.record_freed(outcome.freed_bytes)
    if isinstance(item.act, PurgeTrash):
        level.record_trashed(-(outcome.freed_bytes or 0))
