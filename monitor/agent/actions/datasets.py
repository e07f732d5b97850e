"""Actions on datasets: scan a root, move units to its trash, restore them, and purge the trash."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

import msgspec

from monitor.agent.actions.limits import PurgeLimits
from monitor.agent.actions.outcome import ActionContext, ActionOutcome, failed, refused
from monitor.agent.datasets.check import PlannedUnit
from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.root_scan import FindUses, ScanOptions, read_owners, scan_root
from monitor.agent.datasets.roots import DatasetRoot, DatasetRoots
from monitor.agent.datasets.trash import Trash
from monitor.agent.datasets.trash_age import TrashAges
from monitor.agent.journal import ActionJournal
from monitor.agent.settings import Paths
from monitor.base.clock import Clock
from monitor.facts.actions import ActionState, PurgeTrash, RestoreUnit, ScanDatasets, TrashUnit
from monitor.facts.datasets import PurgeFact, TrashFact

log = logging.getLogger(__name__)


class DatasetActions:
    """Actions below the allowed roots. `find_uses` finds the processes and mounts that use a location."""

    def __init__(
        self,
        allowed: tuple[str, ...],
        paths: Paths,
        journal: ActionJournal,
        find_uses: FindUses,
        ages: TrashAges,
        limits: PurgeLimits,
        clock: Clock = time,
    ) -> None:
        """Raise ValueError if a path cannot be a root."""
        self._allowed = allowed
        self._rootfs = paths.rootfs.rstrip("/")
        self._roots = DatasetRoots(allowed, self._rootfs, paths.proc)
        self._find_uses = find_uses
        self._journal = journal
        self._ages = ages
        self._limits = limits
        self._clock = clock

    def scan(self, action: ScanDatasets, context: ActionContext) -> ActionOutcome:
        """Scan units. The result has `scan`, and the entries of the root's `trash`."""

        def run(root: DatasetRoot) -> ActionOutcome:
            options = ScanOptions(
                owners=read_owners(self._rootfs),
                entries_per_second=action.entries_per_second,
                stop=context.stop,
                progress=lambda entries: context.progress.update(entries=entries),
                clock=self._clock,
            )
            scan = scan_root(root, action.pattern, "file" if action.files else "dir", self._find_uses, options)
            context.progress["entries"] = scan.entries
            trash = self._trash(root, context).entries()
            self._observe(root, trash)
            return _done("stopped" if scan.stopped else "scanned", scan=scan, trash=trash)

        return self._at(action.root, run)

    def trash(self, action: TrashUnit, context: ActionContext) -> ActionOutcome:
        """Move a unit to the trash. The result has the `trash` entry."""
        planned = PlannedUnit(action.path, action.device, action.inode, action.newest)

        def run(root: DatasetRoot) -> ActionOutcome:
            entry = self._trash(root, context).put(planned, action.policy, self._clock.time())
            self._ages.begin(root.text, entry.id)
            return _done("trashed", trash=entry)

        return self._at(action.root, run)

    def restore(self, action: RestoreUnit, context: ActionContext) -> ActionOutcome:
        """Move a unit out of the trash. The result has its former `trash` entry."""
        return self._at(
            action.root, lambda root: _done("restored", trash=self._trash(root, context).restore(action.trash_id))
        )

    def purge(self, action: PurgeTrash, context: ActionContext) -> ActionOutcome:
        """Delete entries that are old enough by the wall clock and by the time that really passed.

        The result has all `purges`. The request cannot ask for less time in the trash than the node requires.
        """
        min_age = max(action.older_than_seconds, self._limits.min_trash_seconds)
        older_than = self._clock.time() - min_age

        def run(root: DatasetRoot) -> ActionOutcome:
            trash = self._trash(root, context)
            entries = trash.entries()
            ages = self._observe(root, entries)
            old = [entry for entry in entries if ages[entry.id] >= min_age]
            return self._purge(trash, [entry for entry in old if entry.trashed_at <= older_than], older_than, context)

        return self._at(action.root, run)

    def recover(self, context: ActionContext) -> None:
        """Complete operations that were interrupted when the agent ended. Never raises: a missing root is skipped."""
        for path in self._allowed:
            outcome = self._at(path, lambda root: _done("recovered", lines=self._trash(root, context).recover()))
            if outcome.state is not ActionState.DONE:
                log.warning("cannot complete interrupted operations on %s: %s", path, outcome.message)

    def _purge(self, trash: Trash, due: list[TrashFact], older_than: float, context: ActionContext) -> ActionOutcome:
        purges: list[PurgeFact] = []
        problems: list[str] = []
        freed = deleted = 0
        context.progress.update(units=0, of=len(due), deleted=0)
        for entry in due:
            if context.stop.is_set():
                break
            if (over := self._limits.refusal(entry.allocated_bytes)) is not None:
                problems.append(f"{entry.path}: {over}")
                continue
            self._limits.spend(entry.allocated_bytes)
            try:
                purge = trash.purge(entry.id, older_than, partial(_report_deleted, context, deleted))
            except DatasetRefusedError as error:  # must not block the purge of the other entries
                problems.append(str(error))
                continue
            purges.append(purge)
            problems += purge.errors
            freed += entry.allocated_bytes if purge.finished else 0
            deleted += purge.deleted
            context.progress.update(units=len(purges), deleted=deleted)
        code = "stopped" if context.stop.is_set() else "partly" if problems else "purged"
        state = ActionState.FAILED if problems and not freed else ActionState.DONE
        return ActionOutcome(state, code, "; ".join(problems[:3]) or None, freed, _encoded(purges=purges))

    def _observe(self, root: DatasetRoot, entries: tuple[TrashFact, ...]) -> dict[str, float]:
        return self._ages.observe(root.text, [entry.id for entry in entries])

    def _trash(self, root: DatasetRoot, context: ActionContext) -> Trash:
        return Trash(root, self._journal, self._find_uses, read_owners(self._rootfs), context.stop)

    def _at(self, path: str, run: Callable[[DatasetRoot], ActionOutcome]) -> ActionOutcome:
        """Call `run` with an open root. Refusals and errors become outcomes."""
        try:
            with self._roots.open(path) as root:
                return run(root)
        except DatasetRefusedError as error:
            outcome = failed if error.reason is RefusalReason.FAILED else refused
            return outcome(error.reason.value, error.detail)
        except ValueError as error:
            return refused("malformed", str(error))
        except OSError as error:
            return failed("failed", str(error))


def _report_deleted(context: ActionContext, deleted_before: int, deleted: int) -> None:
    context.progress["deleted"] = deleted_before + deleted


def _done(code: str, **result: object) -> ActionOutcome:
    return ActionOutcome(ActionState.DONE, code, result=_encoded(**result))


def _encoded(**result: object) -> dict[str, msgspec.Raw]:
    return {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in result.items()}
