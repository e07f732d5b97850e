"""Datasets by request: what there is below a root, into its trash, back out of it, and gone for good."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

import msgspec

from monitor.agent.actions.outcome import ActionContext, ActionOutcome, failed, refused
from monitor.agent.datasets.check import PlannedUnit
from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.root_scan import FindUses, ScanOptions, read_owners, scan_root
from monitor.agent.datasets.roots import DatasetRoot, DatasetRoots
from monitor.agent.datasets.trash import Trash
from monitor.agent.journal import ActionJournal
from monitor.agent.settings import Paths
from monitor.base.clock import Clock
from monitor.facts.actions import ActionState, PurgeTrash, RestoreUnit, ScanDatasets, TrashUnit
from monitor.facts.datasets import PurgeFact, TrashFact

log = logging.getLogger(__name__)


class DatasetActions:
    """What is done to datasets below the roots that the settings allow, nowhere else. `in_use` says who uses what."""

    def __init__(
        self, allowed: tuple[str, ...], paths: Paths, journal: ActionJournal, in_use: FindUses, clock: Clock = time
    ) -> None:
        """Raise ValueError if one of the roots cannot be one."""
        self._allowed = allowed
        self._rootfs = paths.rootfs.rstrip("/")
        self._roots = DatasetRoots(allowed, self._rootfs, paths.proc)
        self._in_use = in_use
        self._journal = journal
        self._clock = clock

    def scan(self, action: ScanDatasets, job: ActionContext) -> ActionOutcome:
        """Measure units. The result has `scan`, and what lies in the root's `trash`."""

        def run(root: DatasetRoot) -> ActionOutcome:
            how = ScanOptions(
                owners=read_owners(self._rootfs),
                entries_per_second=action.entries_per_second,
                stop=job.stop,
                progress=lambda entries: job.progress.update(entries=entries),
                clock=self._clock,
            )
            scan = scan_root(root, action.pattern, "file" if action.files else "dir", self._in_use, how)
            job.progress["entries"] = scan.entries
            trash = self._trash(root, job).entries()
            return _told("stopped" if scan.stopped else "scanned", scan=scan, trash=trash)

        return self._at(action.root, run)

    def trash(self, action: TrashUnit, job: ActionContext) -> ActionOutcome:
        """Move a unit into the trash. The result has the `trash` entry."""
        planned = PlannedUnit(action.path, action.device, action.inode, action.newest)

        def run(root: DatasetRoot) -> ActionOutcome:
            entry = self._trash(root, job).put(planned, action.policy, self._clock.time())
            return _told("trashed", trash=entry)

        return self._at(action.root, run)

    def restore(self, action: RestoreUnit, job: ActionContext) -> ActionOutcome:
        """Put a unit back. The result has the `trash` entry that it was."""
        return self._at(
            action.root, lambda root: _told("restored", trash=self._trash(root, job).restore(action.trash_id))
        )

    def purge(self, action: PurgeTrash, job: ActionContext) -> ActionOutcome:
        """Delete for good what is in the trash for long enough. The result has all `purges`."""
        older_than = self._clock.time() - action.older_than_seconds

        def run(root: DatasetRoot) -> ActionOutcome:
            trash = self._trash(root, job)
            due = [entry for entry in trash.entries() if entry.trashed_at <= older_than]
            return self._purge(trash, due, older_than, job)

        return self._at(action.root, run)

    def recover(self, job: ActionContext) -> None:
        """Bring to an end what an agent that died had begun. Raise nothing: a root that is not there waits."""
        for path in self._allowed:
            outcome = self._at(path, lambda root: _told("recovered", lines=self._trash(root, job).recover()))
            if outcome.state is not ActionState.DONE:
                log.warning("%s: what was begun there is not brought to an end: %s", path, outcome.message)

    def _purge(self, trash: Trash, due: list[TrashFact], older_than: float, job: ActionContext) -> ActionOutcome:
        purges: list[PurgeFact] = []
        problems: list[str] = []
        freed = before = 0
        job.progress.update(units=0, of=len(due), deleted=0)
        for entry in due:
            if job.stop.is_set():
                break
            try:
                purge = trash.purge(entry.id, older_than, partial(_count, job, before))
            except DatasetRefusedError as error:  # one that cannot be purged does not keep the others
                problems.append(str(error))
                continue
            purges.append(purge)
            problems += purge.errors
            freed += entry.allocated_bytes if purge.finished else 0
            before += purge.deleted
            job.progress.update(units=len(purges), deleted=before)
        word = "stopped" if job.stop.is_set() else "partly" if problems else "purged"
        told = _told(word, purges=purges)
        state = ActionState.FAILED if problems and not freed else ActionState.DONE
        return ActionOutcome(state, word, "; ".join(problems[:3]) or None, freed, told.result)

    def _trash(self, root: DatasetRoot, job: ActionContext) -> Trash:
        return Trash(root, self._journal, self._in_use, read_owners(self._rootfs), job.stop)

    def _at(self, path: str, run: Callable[[DatasetRoot], ActionOutcome]) -> ActionOutcome:
        """Do something at a root that is opened for it. Whatever is refused there is the outcome."""
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


def _count(job: ActionContext, before: int, deleted: int) -> None:
    job.progress["deleted"] = before + deleted


def _told(word: str, **result: object) -> ActionOutcome:
    encoded = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in result.items()}
    return ActionOutcome(ActionState.DONE, word, result=encoded)
