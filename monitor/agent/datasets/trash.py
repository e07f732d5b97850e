"""The trash of a root: moves units into it, restores them, and purges them.

A unit is moved only if it is exactly what the plan saw: the same directory, not changed, read or used since, without a
`.keep` file. It is checked again after the move, when its path can no longer be opened by others: a unit that turns out
to be in use, or to be another one, is moved back. Each step is in the journal before it is performed.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping

from monitor.agent.datasets.check import PlannedUnit, check_unchanged, enter_parent, split_path, uses_of
from monitor.agent.datasets.delete import Deletion, Progress
from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.root_scan import FindUses, unit_fact
from monitor.agent.datasets.roots import DatasetRoot
from monitor.agent.datasets.trash_store import PURGING, UNIT, TrashStore, identity, move_without_replacing, rename
from monitor.agent.datasets.tree import Directory, DirectoryTree, exists
from monitor.agent.datasets.units import TRASH_DIRECTORY
from monitor.agent.journal import ActionJournal, JournalLine, JournalValue
from monitor.facts.datasets import PurgeFact, TrashFact, UnitFact

TRASH_ACTION, RESTORE_ACTION, PURGE_ACTION = "dataset.trash", "dataset.restore", "dataset.purge"


class Trash:
    """The trash of one open root. Not thread-safe."""

    def __init__(
        self,
        root: DatasetRoot,
        journal: ActionJournal,
        find_uses: FindUses,
        owners: Mapping[int, str],
        stop: threading.Event | None = None,
    ) -> None:
        self._root = root
        self._journal = journal
        self._find_uses = find_uses
        self._owners = owners
        self._stop = stop or threading.Event()

    def put(self, planned: PlannedUnit, policy: str, now: float) -> TrashFact:
        """Move a planned unit to the trash. Raise DatasetRefusedError, in which case it is in its original place."""
        if self._root.read_only:
            raise DatasetRefusedError(RefusalReason.READ_ONLY, f"{self._root.text} is mounted read-only")
        with DirectoryTree(self._root) as tree:
            parent = enter_parent(tree, planned.path)
            unit, status = check_unchanged(tree, self._root, parent, planned, self._find_uses, self._stop)
            entry = _entry(unit_fact(self._root, unit, status, self._owners), policy, now)
            self._move_in(tree, parent, entry)
        return entry

    def entries(self) -> tuple[TrashFact, ...]:
        """All readable entries of the trash. Raise DatasetRefusedError if the trash is unsafe."""
        entries = []
        with DirectoryTree(self._root) as tree:
            store = TrashStore(tree)
            try:
                entry_ids = store.entry_ids()
            except DatasetRefusedError as refusal:
                if refusal.reason == RefusalReason.NOT_IN_TRASH:
                    return ()
                raise
            for entry_id in entry_ids:
                try:
                    entries.append(store.find(entry_id)[1])
                except DatasetRefusedError:
                    continue
        return tuple(entries)

    def restore(self, entry_id: str) -> TrashFact:
        """Move a unit back to its original path. Raise DatasetRefusedError, in which case it is still in the trash."""
        with DirectoryTree(self._root) as tree:
            directory, entry = TrashStore(tree).find(entry_id)
            if entry.state != "trashed":
                reason = RefusalReason.PURGING if entry.state == "purging" else RefusalReason.NOT_IN_TRASH
                raise DatasetRefusedError(reason, f"{entry_id} cannot be restored: it is {entry.state}")
            parent = enter_parent(tree, entry.path)
            intent_id = self._journal.intend(RESTORE_ACTION, _journal_details(entry))
            try:
                self._move_out(tree, directory, parent, entry)
            except DatasetRefusedError as refusal:
                self._journal.done(intent_id, "refused", {"error": str(refusal)})
                raise
            self._journal.done(intent_id, "restored")
        return entry

    def purge(self, entry_id: str, older_than: float, progress: Progress | None = None) -> PurgeFact:
        """Delete a unit that was trashed before `older_than`. Raise DatasetRefusedError.

        A purge that was stopped or killed is continued by the next call.
        """
        with DirectoryTree(self._root) as tree:
            directory, entry = TrashStore(tree).find(entry_id)
            if entry.trashed_at > older_than:
                raise DatasetRefusedError(RefusalReason.TOO_YOUNG, f"{entry_id} was trashed at {entry.trashed_at:.0f}")
            intent_id = self._journal.intend(PURGE_ACTION, _journal_details(entry))
            return self._delete(tree, directory, intent_id, progress)

    def recover(self) -> tuple[JournalLine, ...]:
        """Complete operations on this root that were interrupted, for example by kill -9. Return their intents."""
        intents = tuple(line for line in self._journal.open_intents() if line.what.get("root") == self._root.text)
        for intent in intents:
            with DirectoryTree(self._root) as tree:
                try:
                    self._recover(tree, intent)
                except DatasetRefusedError as refusal:
                    self._journal.done(intent.id, "refused", {"error": str(refusal)})
        return intents

    def _recover(self, tree: DirectoryTree, intent: JournalLine) -> None:
        store, entry_id = TrashStore(tree), str(intent.what.get("trash"))
        try:
            directory = store.enter(entry_id)
        except DatasetRefusedError as refusal:
            if refusal.reason != RefusalReason.NOT_IN_TRASH:
                raise
            self._journal.done(intent.id, "not-moved" if intent.action == TRASH_ACTION else "gone")
            return
        with tree.at(directory) as descriptor:
            moved, deleting = exists(UNIT, descriptor), exists(PURGING, descriptor)
        if intent.action == PURGE_ACTION:
            self._delete(tree, directory, intent.id, None)
        elif intent.action == TRASH_ACTION and moved:
            self._check_moved(tree, entry_id, intent.id)
        elif not moved and not deleting:
            store.drop(directory)
            self._journal.done(intent.id, "not-moved" if intent.action == TRASH_ACTION else "restored")
        else:
            self._journal.done(intent.id, "not-restored")

    def _move_in(self, tree: DirectoryTree, parent: Directory, entry: TrashFact) -> None:
        store = TrashStore(tree)
        try:
            store.open_or_create()
            intent_id = self._journal.intend(TRASH_ACTION, _journal_details(entry))
        except OSError as error:
            raise _failure(entry.path, error) from error
        try:
            directory = store.add(entry)
            try:
                with tree.at(parent) as source, tree.at(directory) as target:
                    rename(source, split_path(entry.path)[-1], target, UNIT)
            except OSError:
                store.drop(directory)
                raise
        except OSError as error:
            self._journal.done(intent_id, "failed", {"error": str(error)})
            raise _failure(entry.path, error) from error
        self._check_moved(tree, entry.id, intent_id)

    def _check_moved(self, tree: DirectoryTree, entry_id: str, intent_id: str) -> None:
        """Check a unit after its move, when others can no longer open its path, and move it back if refused."""
        directory, entry = TrashStore(tree).find(entry_id)
        refusal = self._late_refusal(tree, directory, entry)
        if refusal is None:
            self._journal.done(intent_id, "trashed")
            return
        try:
            self._move_out(tree, directory, enter_parent(tree, entry.path), entry)
        except DatasetRefusedError as error:
            self._journal.done(intent_id, "trashed", {"error": f"{refusal}; cannot be moved back: {error}"})
            text = f"{refusal.detail}; it remains in the trash as {entry_id}: {error}"
            raise DatasetRefusedError(refusal.reason, text) from error
        self._journal.done(intent_id, "put-back", {"error": str(refusal)})
        raise refusal

    def _late_refusal(self, tree: DirectoryTree, directory: Directory, entry: TrashFact) -> DatasetRefusedError | None:
        with tree.at(directory) as descriptor:
            moved = identity(UNIT, descriptor)
        if moved != (self._root.device, entry.inode):
            return DatasetRefusedError(RefusalReason.CHANGED, f"{entry.path} was replaced while it was moved")
        uses = uses_of(self._root, f"{TRASH_DIRECTORY}/{entry.id}/{UNIT}".encode(), self._find_uses)
        if uses:
            return DatasetRefusedError(RefusalReason.IN_USE, f"{entry.path} came into use during the move: {uses[0]}")
        return None

    def _move_out(self, tree: DirectoryTree, directory: Directory, parent: Directory, entry: TrashFact) -> None:
        try:
            with tree.at(directory) as source, tree.at(parent) as target:
                move_without_replacing(source, UNIT, target, split_path(entry.path)[-1])
            TrashStore(tree).drop(directory)
        except FileExistsError as error:
            raise DatasetRefusedError(RefusalReason.EXISTS, f"{entry.path} exists: move it away first") from error
        except OSError as error:
            raise _failure(entry.path, error) from error

    def _delete(
        self, tree: DirectoryTree, directory: Directory, intent_id: str, progress: Progress | None
    ) -> PurgeFact:
        try:
            with tree.at(directory) as descriptor:
                if exists(UNIT, descriptor):
                    rename(descriptor, UNIT, descriptor, PURGING)
            result = Deletion(tree, self._stop, progress).run(directory, PURGING)
            if result.finished:
                TrashStore(tree).drop(directory)
        except OSError as error:
            self._journal.done(intent_id, "failed", {"error": str(error)})
            raise _failure(directory.name, error) from error
        outcome = "purged" if result.finished else "stopped" if result.stopped else "partly"
        self._journal.done(intent_id, outcome, {"deleted": result.entries})
        return PurgeFact(
            id=directory.name,
            deleted=result.entries,
            finished=result.finished,
            stopped=result.stopped,
            errors=tuple(result.errors.first),
            failures=result.errors.count,
        )


def _entry(unit: UnitFact, policy: str, now: float) -> TrashFact:
    return TrashFact(
        id=uuid.uuid4().hex,
        root=unit.root,
        path=unit.path,
        kind=unit.kind,
        device=unit.device,
        inode=unit.inode,
        owner_uid=unit.owner_uid,
        owner=unit.owner,
        allocated_bytes=unit.allocated_bytes,
        files=unit.files,
        trashed_at=now,
        policy=policy,
        state="trashed",
    )


def _journal_details(entry: TrashFact) -> dict[str, JournalValue]:
    return {
        "root": entry.root,
        "path": entry.path,
        "trash": entry.id,
        "policy": entry.policy,
        "device": entry.device,
        "inode": entry.inode,
        "allocated_bytes": entry.allocated_bytes,
    }


def _failure(path: str, error: OSError) -> DatasetRefusedError:
    return DatasetRefusedError(RefusalReason.FAILED, f"{path}: {error.strerror or error}")
