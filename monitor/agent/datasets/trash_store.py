"""On-disk layout of a trash: `<root>/.gpuwarden-trash/<id>/` with `meta.json` and the unit.

The unit is named `unit`, and `purging` as soon as its deletion begins: after a crash the name tells whether it is still
complete. Only the agent's user can access the directory.
"""

from __future__ import annotations

import errno
import os
import re
import stat

import msgspec

from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.tree import Directory, DirectoryTree, exists
from monitor.agent.datasets.units import TRASH_DIRECTORY
from monitor.facts.datasets import TrashFact

UNIT, PURGING = "unit", "purging"
_META, _META_NEW = "meta.json", "meta.json.new"
_MAX_META_BYTES = 1 << 20
_ENTRY_ID = re.compile(r"[0-9a-f]{32}")


class TrashStore:
    """The trash directory of a root, accessed through a directory tree."""

    def __init__(self, tree: DirectoryTree) -> None:
        self._tree = tree

    def open(self) -> Directory:
        """Open the trash directory. Raise DatasetRefusedError if it is missing, a link, or accessible to others."""
        try:
            directory, status = self._tree.enter(self._tree.top, TRASH_DIRECTORY)
        except FileNotFoundError as error:
            raise DatasetRefusedError(RefusalReason.NOT_IN_TRASH, "the root has no trash yet") from error
        except OSError as error:
            raise DatasetRefusedError(RefusalReason.UNSAFE_TRASH, f"{TRASH_DIRECTORY}: {error.strerror}") from error
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            text = f"{TRASH_DIRECTORY} must belong to user {os.geteuid()} with mode 0700"
            raise DatasetRefusedError(RefusalReason.UNSAFE_TRASH, text)
        return directory

    def open_or_create(self) -> Directory:
        """Open the trash directory, created if missing. Raise DatasetRefusedError like `open`, or OSError."""
        with self._tree.at(self._tree.top) as top:
            try:
                os.mkdir(TRASH_DIRECTORY, 0o700, dir_fd=top)
                sync(top)
            except FileExistsError:
                pass  # checked by `open`
        return self.open()

    def add(self, entry: TrashFact) -> Directory:
        """Create the directory of an entry, with its metadata. Raise OSError, in which case nothing is left."""
        trash = self.open_or_create()
        with self._tree.at(trash) as descriptor:
            os.mkdir(entry.id, 0o700, dir_fd=descriptor)
            sync(descriptor)
        directory = self._tree.enter(trash, entry.id)[0]
        try:
            self._write_metadata(directory, entry)
        except OSError:
            self.drop(directory)
            raise
        return directory

    def _write_metadata(self, directory: Directory, entry: TrashFact) -> None:
        with self._tree.at(directory) as descriptor:
            file = os.open(_META_NEW, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=descriptor)
            with open(file, "wb") as meta:
                meta.write(msgspec.json.encode(entry))
                meta.flush()
                os.fsync(meta.fileno())
            rename(descriptor, _META_NEW, descriptor, _META)

    def entry_ids(self) -> list[str]:
        """Ids of all entries. Raise DatasetRefusedError like `open`."""
        with self._tree.at(self.open()) as descriptor:
            return sorted(name for name in os.listdir(descriptor) if _ENTRY_ID.fullmatch(name))

    def enter(self, entry_id: str) -> Directory:
        """Open the directory of an entry. Raise DatasetRefusedError if there is none."""
        if not _ENTRY_ID.fullmatch(entry_id):
            raise DatasetRefusedError(RefusalReason.NOT_IN_TRASH, f"not the id of an entry: {entry_id!r}")
        try:
            return self._tree.enter(self.open(), entry_id)[0]
        except FileNotFoundError as error:
            raise DatasetRefusedError(RefusalReason.NOT_IN_TRASH, f"{entry_id} is not in the trash") from error
        except OSError as error:
            raise DatasetRefusedError(RefusalReason.UNSAFE_TRASH, f"{entry_id}: {error.strerror}") from error

    def find(self, entry_id: str) -> tuple[Directory, TrashFact]:
        """An entry with its current state, and its directory. Raise DatasetRefusedError if it cannot be read."""
        directory = self.enter(entry_id)
        try:
            with self._tree.at(directory) as descriptor:
                file = os.open(_META, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
                with open(file, "rb") as meta:
                    entry = msgspec.json.decode(meta.read(_MAX_META_BYTES), type=TrashFact)
                state = "trashed" if exists(UNIT, descriptor) else "empty"
                if exists(PURGING, descriptor):
                    state = "purging"
        except (OSError, msgspec.DecodeError) as error:
            raise DatasetRefusedError(RefusalReason.UNREADABLE, f"{directory.name}: {error}") from error
        return directory, msgspec.structs.replace(entry, state=state)

    def drop(self, directory: Directory) -> None:
        """Remove the directory of an entry without a unit. Raise OSError if it contains anything else."""
        with self._tree.at(directory) as descriptor:
            for name in (_META, _META_NEW):
                if exists(name, descriptor):
                    os.unlink(name, dir_fd=descriptor)
        self._tree.release(directory)
        with self._tree.at(self.open()) as descriptor:
            os.rmdir(directory.name, dir_fd=descriptor)
            sync(descriptor)


def identity(name: str, descriptor: int) -> tuple[int, int]:
    """Device and inode of a directory entry. Raise OSError."""
    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    return status.st_dev, status.st_ino


def rename(from_descriptor: int, name: str, to_descriptor: int, to_name: str) -> None:
    """Move an entry durably to a directory that only the agent writes to. Raise OSError."""
    os.rename(name, to_name, src_dir_fd=from_descriptor, dst_dir_fd=to_descriptor)
    sync(to_descriptor)
    sync(from_descriptor)


def move_without_replacing(from_descriptor: int, name: str, to_descriptor: int, to_name: str) -> None:
    """Move an entry durably to a directory that others write to. Raise OSError; FileExistsError if the name is taken.

    A rename would replace an existing file, so a file gets a second name by link(2) first; after a crash in between it
    has both names, which the next attempt accepts. Renaming a directory can only ever replace an empty directory.
    """
    if stat.S_ISDIR(os.stat(name, dir_fd=from_descriptor, follow_symlinks=False).st_mode):
        if exists(to_name, to_descriptor):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        rename(from_descriptor, name, to_descriptor, to_name)
        return
    try:
        os.link(name, to_name, src_dir_fd=from_descriptor, dst_dir_fd=to_descriptor, follow_symlinks=False)
    except FileExistsError:
        if identity(name, from_descriptor) != identity(to_name, to_descriptor):
            raise
    sync(to_descriptor)
    os.unlink(name, dir_fd=from_descriptor)
    sync(from_descriptor)


def sync(descriptor: int) -> None:
    """Make changes of a directory durable, on filesystems that support it. Raise OSError."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some FUSE filesystems do not support it
            raise
