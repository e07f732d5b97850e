"""The trash of a root: a unit is moved into it, brought back out of it, and deleted out of it for good.

Nothing happens to a unit that is not exactly what the plan saw: the same directory, not changed, not read and not used
since, without a `.keep`. It is looked at once more after the move, when nobody can reach it by its path any longer:
what turns out to be in use then, or to be something else, is put back. Each step is in the journal before it is done.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping

from monitor.agent.datasets.check import PlannedUnit, check_unchanged, enter_parent, split_path, uses_of
from monitor.agent.datasets.delete import Deletion
from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.root_scan import FindUses, unit_fact
from monitor.agent.datasets.roots import DatasetRoot
from monitor.agent.datasets.trash_store import PURGING, UNIT, TrashStore, identity, put_back, rename
from monitor.agent.datasets.tree import Directory, DirectoryTree, exists
from monitor.agent.datasets.units import TRASH_DIRECTORY
from monitor.agent.journal import ActionJournal, JournalLine, JournalValue
from monitor.facts.datasets import PurgeFact, TrashFact, UnitFact

TRASH_ACTION, RESTORE_ACTION, PURGE_ACTION = "dataset.trash", "dataset.restore", "dataset.purge"


class Trash:
    """The trash of one open root. Used from one thread at a time."""

    def __init__(
        self,
        root: DatasetRoot,
        journal: ActionJournal,
        in_use: FindUses,
        owners: Mapping[int, str],
        stop: threading.Event | None = None,
    ) -> None:
        self._root = root
        self._journal = journal
        self._in_use = in_use
        self._owners = owners
        self._stop = stop or threading.Event()

    def put(self, planned: PlannedUnit, policy: str, now: float) -> TrashFact:
        """Given a unit as a plan has it, move it into the trash. Raise RefusedError: then it is where it was."""
        if self._root.read_only:
            raise DatasetRefusedError(RefusalReason.READ_ONLY, f"{self._root.text} is mounted read-only")
        with DirectoryTree(self._root) as tree:
            parent = enter_parent(tree, planned.path)
            unit, status = check_unchanged(tree, self._root, parent, planned, self._in_use, self._stop)
            entry = _entry(unit_fact(self._root, unit, status, self._owners), policy, now)
            self._move_in(tree, parent, entry)
        return entry

    def entries(self) -> tuple[TrashFact, ...]:
        """Return what is in the trash; an entry that cannot be read is left out. Raise RefusedError if it is unsafe."""
        found = []
        with DirectoryTree(self._root) as tree:
            store = TrashStore(tree)
            try:
                idents = store.idents()
            except DatasetRefusedError as refusal:
                if refusal.reason == RefusalReason.NOT_IN_TRASH:
                    return ()
                raise
            for ident in idents:
                try:
                    found.append(store.load(store.home(ident)))
                except DatasetRefusedError:
                    continue
        return tuple(found)

    def restore(self, ident: str) -> TrashFact:
        """Given an id, put that unit back where it was. Raise RefusedError: then it is still in the trash."""
        with DirectoryTree(self._root) as tree:
            store = TrashStore(tree)
            home = store.home(ident)
            entry = store.load(home)
            if entry.state != "trashed":
                reason = RefusalReason.PURGING if entry.state == "purging" else RefusalReason.NOT_IN_TRASH
                raise DatasetRefusedError(reason, f"{ident} cannot be restored: it is {entry.state}")
            parent = enter_parent(tree, entry.path)
            intent = self._journal.intend(RESTORE_ACTION, _about(entry))
            try:
                self._move_out(tree, home, parent, entry)
            except DatasetRefusedError as refusal:
                self._journal.done(intent, "refused", {"error": str(refusal)})
                raise
            self._journal.done(intent, "restored")
        return entry

    def purge(self, ident: str, older_than: float, progress: Callable[[int], None] | None = None) -> PurgeFact:
        """Given an id, delete that unit for good if it was trashed before that time. Raise RefusedError.

        What was stopped, or killed, goes on when this is called again.
        """
        with DirectoryTree(self._root) as tree:
            store = TrashStore(tree)
            home = store.home(ident)
            entry = store.load(home)
            if entry.trashed_at > older_than:
                raise DatasetRefusedError(RefusalReason.TOO_YOUNG, f"{ident} was trashed at {entry.trashed_at:.0f}")
            intent = self._journal.intend(PURGE_ACTION, _about(entry))
            return self._delete(tree, home, intent, progress)

    def recover(self) -> tuple[JournalLine, ...]:
        """Bring to an end what was begun on this root and never ended, as after a kill -9. Return what that was."""
        begun = tuple(line for line in self._journal.open() if line.what.get("root") == self._root.text)
        for line in begun:
            with DirectoryTree(self._root) as tree:
                try:
                    self._recover(tree, line)
                except DatasetRefusedError as refusal:
                    self._journal.done(line.id, "refused", {"error": str(refusal)})
        return begun

    def _recover(self, tree: DirectoryTree, line: JournalLine) -> None:
        store, ident = TrashStore(tree), str(line.what.get("trash"))
        try:
            home = store.home(ident)
        except DatasetRefusedError as refusal:
            if refusal.reason != RefusalReason.NOT_IN_TRASH:
                raise
            self._journal.done(line.id, "not-moved" if line.action == TRASH_ACTION else "gone")
            return
        with tree.at(home) as descriptor:
            moved, deleting = exists(UNIT, descriptor), exists(PURGING, descriptor)
        if line.action == PURGE_ACTION:
            self._delete(tree, home, line.id, None)
        elif line.action == TRASH_ACTION and moved:
            self._settle_move(tree, ident, line.id)
        elif not moved and not deleting:
            store.drop(home)
            self._journal.done(line.id, "not-moved" if line.action == TRASH_ACTION else "restored")
        else:
            self._journal.done(line.id, "not-restored")

    def _move_in(self, tree: DirectoryTree, parent: Directory, entry: TrashFact) -> None:
        store = TrashStore(tree)
        try:
            store.prepare()
            intent = self._journal.intend(TRASH_ACTION, _about(entry))
        except OSError as error:
            raise _failed(entry.path, error) from error
        try:
            home = store.add(entry)
            try:
                with tree.at(parent) as source, tree.at(home) as target:
                    rename(source, split_path(entry.path)[-1], target, UNIT)
            except OSError:
                store.drop(home)
                raise
        except OSError as error:
            self._journal.done(intent, "failed", {"error": str(error)})
            raise _failed(entry.path, error) from error
        self._settle_move(tree, entry.id, intent)

    def _settle_move(self, tree: DirectoryTree, ident: str, intent: str) -> None:
        """Look at what was moved, now that it is out of reach, and put it back if it should not have been."""
        store = TrashStore(tree)
        home = store.home(ident)
        entry = store.load(home)
        refusal = self._why_not(tree, home, entry)
        if refusal is None:
            self._journal.done(intent, "trashed")
            return
        try:
            self._move_out(tree, home, enter_parent(tree, entry.path), entry)
        except DatasetRefusedError as stuck:
            self._journal.done(intent, "trashed", {"error": f"{refusal}; cannot be put back: {stuck}"})
            raise DatasetRefusedError(
                refusal.reason, f"{refusal.detail}; it is in the trash as {ident}: {stuck}"
            ) from stuck
        self._journal.done(intent, "put-back", {"error": str(refusal)})
        raise refusal

    def _why_not(self, tree: DirectoryTree, home: Directory, entry: TrashFact) -> DatasetRefusedError | None:
        with tree.at(home) as descriptor:
            found = identity(UNIT, descriptor)
        if found != (self._root.device, entry.inode):
            return DatasetRefusedError(RefusalReason.CHANGED, f"{entry.path} was replaced while it was moved")
        users = uses_of(self._root, f"{TRASH_DIRECTORY}/{entry.id}/{UNIT}".encode(), self._in_use)
        if users:
            return DatasetRefusedError(
                RefusalReason.IN_USE, f"{entry.path} came into use while it was moved: {users[0]}"
            )
        return None

    def _move_out(self, tree: DirectoryTree, home: Directory, parent: Directory, entry: TrashFact) -> None:
        try:
            with tree.at(home) as source, tree.at(parent) as target:
                put_back(source, UNIT, target, split_path(entry.path)[-1])
            TrashStore(tree).drop(home)
        except FileExistsError as error:
            raise DatasetRefusedError(
                RefusalReason.EXISTS, f"{entry.path} is there again: move that away first"
            ) from error
        except OSError as error:
            raise _failed(entry.path, error) from error

    def _delete(
        self, tree: DirectoryTree, home: Directory, intent: str, progress: Callable[[int], None] | None
    ) -> PurgeFact:
        try:
            with tree.at(home) as descriptor:
                if exists(UNIT, descriptor):
                    rename(descriptor, UNIT, descriptor, PURGING)
            done = Deletion(tree, self._stop, progress).run(home, PURGING)
            if done.finished:
                TrashStore(tree).drop(home)
        except OSError as error:
            self._journal.done(intent, "failed", {"error": str(error)})
            raise _failed(home.name, error) from error
        left = "stopped" if done.stopped else "partly"
        self._journal.done(intent, "purged" if done.finished else left, {"deleted": done.entries})
        return PurgeFact(
            id=home.name,
            deleted=done.entries,
            finished=done.finished,
            stopped=done.stopped,
            errors=tuple(done.errors.first),
            failures=done.errors.count,
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


def _about(entry: TrashFact) -> dict[str, JournalValue]:
    return {
        "root": entry.root,
        "path": entry.path,
        "trash": entry.id,
        "policy": entry.policy,
        "device": entry.device,
        "inode": entry.inode,
        "allocated_bytes": entry.allocated_bytes,
    }


def _failed(what: str, error: OSError) -> DatasetRefusedError:
    return DatasetRefusedError(RefusalReason.FAILED, f"{what}: {error.strerror or error}")
