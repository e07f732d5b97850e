"""Has a plan done, item by item, written down before and after each; and ends it where it has to end.

Nothing is done twice: an item is done under an id that is used once, and what was begun when the process ended is asked
for by that id, never begun again. In a dry run nobody is asked to do anything.
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
from monitor.cleanup.journal import CleanupJournal, CleanupRun, ItemState, JournalEntry, RunState, new_id
from monitor.cleanup.model import CleanupPlan, Item, Risk
from monitor.cleanup.policy import Caps
from monitor.cleanup.schedule import is_ready
from monitor.facts.actions import PurgeTrash, TrashUnit
from monitor.leader.elector import ALONE, Alone, Leading

log = logging.getLogger(__name__)
OVER_QUOTA = "cleanup.why.dataset-over-quota"
LEASE_LOST = "lease-lost"
STARTING = "starting"  # an agent's word: a pod that is starting there may name any image
MAX_STARTING_WAIT_SECONDS = (
    120.0  # seconds that a run waits in all for pods to have started: twice as long as an agent minds one
)
STARTING_RETRY_SECONDS = 10.0


@dataclass(frozen=True)
class ItemOutcome:
    """What became of an item. `word` is what programs go by."""

    state: ItemState
    word: str
    message: str | None = None
    freed_bytes: int | None = None
    trash: str | None = None


class ShutdownError(Exception):
    """The daemon is being stopped in the middle of a run: the next process finds it as it is and goes on from there."""


class ItemExecutor(Protocol):
    """Who does things, where they live. Whatever goes wrong is what became of the item."""

    def do(self, run: CleanupRun, item: Item, request: str) -> ItemOutcome:
        """Do an item under an id that was never used. Raise StoppedError if nobody waits for its end any more."""
        ...

    def ask(self, entry: JournalEntry) -> ItemOutcome:
        """Return what became of an item that somebody was asked to do, or nearly, before this process began."""
        ...


@dataclass
class _RunProgress:
    """One run at work."""

    run: CleanupRun
    caps: Caps
    items: int
    level: DiskLevel | None
    ends_at: float  # of the monotonic clock
    term: int  # of this replica's time of acting
    failed: int = 0
    patient_until: float | None = None  # of the monotonic clock; set when the first pod was met that is starting


class PlanRunner:
    """Runs plans. One run at a time for each policy and node."""

    def __init__(
        self,
        journal: CleanupJournal,
        hands: ItemExecutor,
        stopping: threading.Event,
        now: Callable[[], float] = time.time,
        leading: Leading | None = None,
        rest: float = STARTING_RETRY_SECONDS,
    ) -> None:
        self._rest = rest
        self._journal = journal
        self._hands = hands
        self._stopping = stopping
        self._now = now
        self._leading = leading or Alone()
        self._left_open = journal.open_runs()
        self._busy: set[tuple[str, str | None]] = set()
        self._free = threading.Condition()

    def claim(self, policy: str, node: str | None, patience: float = 0.0) -> bool:
        """Return whether a run of this policy on this node may begin; then `release` has to be called after it.

        For one that is under way it waits so many seconds: it may be over already but for its last words.
        """
        with self._free:
            if not self._free.wait_for(lambda: (policy, node) not in self._busy, patience):
                return False
            self._busy.add((policy, node))
            return True

    def release(self, policy: str, node: str | None) -> None:
        """Let the next run of this policy on this node begin."""
        with self._free:
            self._busy.discard((policy, node))
            self._free.notify_all()

    def note(self, run: CleanupRun, plan: CleanupPlan, end: str) -> CleanupRun:
        """Write down a plan of which nothing is done, and why."""
        run = changed(run, state=RunState.PLANNED, end=end, ended_at=self._now())
        self._journal.begin(run, plan)
        return run

    def run(
        self, run: CleanupRun, plan: CleanupPlan, caps: Caps, level: DiskLevel | None, term: int = ALONE
    ) -> CleanupRun:
        """Do what of a plan may be done now, and return how that went. The report is up to the caller.

        It was begun in a `term` of acting, and ends with that. Raise StoppedError if the daemon is stopped before.
        """
        now = self._now()
        items = [item for item in plan.items if is_ready(item, now)]
        run = changed(run, before=level.share if level is not None else None)
        entries = self._journal.begin(run, plan, items)
        progress = _RunProgress(run, caps, len(entries), level, time.monotonic() + caps.minutes * 60, term)
        end = "done"
        for entry in entries:
            stop = self._why_stop(progress, entry.item)
            if stop is not None:
                end = stop
                if stop == LEASE_LOST:
                    self._leave(progress, entries[entry.place :])
                break
            self._do(progress, entry)
        if level is not None:
            level.settle()
            end = "low-water" if end == "done" and entries and level.reached() else end
            progress.run = changed(progress.run, after=level.share)
        return changed(progress.run, end=end, ended_at=self._now(), state=RunState.ENDED)

    def recover(self) -> tuple[CleanupRun, ...]:
        """Ask what became of all that was under way when the last process ended, and return those runs, closed."""
        found = []
        for begun in self._left_open:
            run = begun
            for entry in self._journal.entries(run.id):
                if entry.state is ItemState.INTENDED:
                    run = self._ended(run, entry, self._hands.ask(entry))
            found.append(changed(run, end="interrupted", ended_at=self._now(), state=RunState.ENDED))
        return tuple(found)

    def _why_stop(self, progress: _RunProgress, item: Item) -> str | None:
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
        return "low-water" if reached else None

    def _leave(self, progress: _RunProgress, entries: tuple[JournalEntry, ...]) -> None:
        """Write down that items were not done because another replica acts now."""
        for entry in entries:
            progress.run = self._ended(progress.run, entry, ItemOutcome(ItemState.LATER, LEASE_LOST))

    def _do(self, progress: _RunProgress, entry: JournalEntry) -> None:
        if self._journal.trouble is not None and entry.item.risk is not Risk.LOW:
            # What cannot be written down is not done; but images may be what fills the disk of the journal.
            done = ItemOutcome(ItemState.FAILED, "not-journaled", self._journal.trouble)
        else:
            entry, done = self._asked_for(progress, entry)
            while done.word == STARTING and self._is_worth_waiting(progress):
                entry, done = self._asked_for(progress, entry)
        progress.run = self._ended(progress.run, entry, done)
        progress.failed += done.state is ItemState.FAILED
        if progress.level is not None and done.state is ItemState.DONE:
            _update_level(progress.level, entry.item, done)

    def _asked_for(self, progress: _RunProgress, entry: JournalEntry) -> tuple[JournalEntry, ItemOutcome]:
        """Have an item done under an id of its own, written down before."""
        request = new_id("act")
        entry = changed(entry, state=ItemState.INTENDED, request=request, intended_at=self._now())
        self._journal.write(progress.run, entry)
        return entry, self._hands.do(progress.run, entry.item, request)

    def _is_worth_waiting(self, progress: _RunProgress) -> bool:
        """Rest, and return whether to ask once more: pods that are starting have soon started."""
        now = time.monotonic()
        if progress.patient_until is None:
            progress.patient_until = min(now + MAX_STARTING_WAIT_SECONDS, progress.ends_at)
        if now >= progress.patient_until:
            return False
        if self._stopping.wait(self._rest):
            raise ShutdownError
        return True

    def _ended(self, run: CleanupRun, entry: JournalEntry, done: ItemOutcome) -> CleanupRun:
        """Write down what became of an item, and return the run with it."""
        freed = _freed_bytes(entry.item, done)
        run = changed(run, freed_bytes=run.freed_bytes + freed)
        entry = changed(
            entry,
            state=done.state,
            ended_at=self._now(),
            outcome=done.word,
            message=done.message,
            freed_bytes=done.freed_bytes,
            trash=done.trash,
        )
        self._journal.write(run, entry)
        log.info(
            "%s: %s %s: %s%s",
            run.policy, entry.item.name, done.state, done.word, f" ({done.message})" if done.message else "",
        )  # fmt: skip
        return run


def _is_unconditional(item: Item) -> bool:
    """Return whether an item is due however full the disk is: what is over a quota, or long enough in the trash."""
    return isinstance(item.act, PurgeTrash) or item.why.key == OVER_QUOTA


def _freed_bytes(item: Item, done: ItemOutcome) -> int:
    """Return what counts as freed: of what went into the trash, what it will free."""
    if done.state is not ItemState.DONE:
        return 0
    if done.freed_bytes is None and isinstance(item.act, TrashUnit):
        return item.frees_bytes or 0
    return done.freed_bytes or 0


def _update_level(level: DiskLevel, item: Item, done: ItemOutcome) -> None:
    if isinstance(item.act, TrashUnit):
        level.moved(item.frees_bytes or 0)
        return
    level.freed(done.freed_bytes)
    if isinstance(item.act, PurgeTrash):
        level.moved(-(done.freed_bytes or 0))
