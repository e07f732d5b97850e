"""How a trash lies on the disk: `<root>/.gpuwarden-trash/<id>/` with `meta.json` and the unit itself.

The unit is called `unit` there, and `purging` from the moment that its deletion begins: after a crash the name tells
whether it is still whole. The directory is ours and nobody else can look into it.
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
    """The trash of one root, held by the descriptors of a tree."""

    def __init__(self, tree: DirectoryTree) -> None:
        self._tree = tree

    def open(self) -> Directory:
        """Return the directory of the trash. Raise RefusedError if it is missing, a link, or not ours alone."""
        try:
            directory, status = self._tree.enter(self._tree.top, TRASH_DIRECTORY)
        except FileNotFoundError as error:
            raise DatasetRefusedError(RefusalReason.NOT_IN_TRASH, "there is no trash here yet") from error
        except OSError as error:
            raise DatasetRefusedError(RefusalReason.UNSAFE_TRASH, f"{TRASH_DIRECTORY}: {error.strerror}") from error
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise DatasetRefusedError(
                RefusalReason.UNSAFE_TRASH, f"{TRASH_DIRECTORY} must belong to user {os.geteuid()} with mode 0700"
            )
        return directory

    def prepare(self) -> Directory:
        """Return the directory of the trash, made if need be. Raise RefusedError as `open` does, or OSError."""
        with self._tree.at(self._tree.top) as top:
            try:
                os.mkdir(TRASH_DIRECTORY, 0o700, dir_fd=top)
                sync(top)
            except FileExistsError:
                pass  # `open` looks at what it is
        return self.open()

    def add(self, entry: TrashFact) -> Directory:
        """Given an entry, make its directory with its description on the disk. Raise OSError: then there is none."""
        trash = self.prepare()
        with self._tree.at(trash) as descriptor:
            os.mkdir(entry.id, 0o700, dir_fd=descriptor)
            sync(descriptor)
        home = self._tree.enter(trash, entry.id)[0]
        try:
            self._describe(home, entry)
        except OSError:
            self.drop(home)
            raise
        return home

    def _describe(self, home: Directory, entry: TrashFact) -> None:
        with self._tree.at(home) as descriptor:
            file = os.open(_META_NEW, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=descriptor)
            with open(file, "wb") as meta:
                meta.write(msgspec.json.encode(entry))
                meta.flush()
                os.fsync(meta.fileno())
            rename(descriptor, _META_NEW, descriptor, _META)

    def idents(self) -> list[str]:
        """Return the ids of what is in the trash. Raise RefusedError as `open` does."""
        with self._tree.at(self.open()) as descriptor:
            return sorted(name for name in os.listdir(descriptor) if _ENTRY_ID.fullmatch(name))

    def home(self, ident: str) -> Directory:
        """Given an id, return the directory of that entry. Raise RefusedError if there is none."""
        if not _ENTRY_ID.fullmatch(ident):
            raise DatasetRefusedError(RefusalReason.NOT_IN_TRASH, f"not the id of an entry: {ident!r}")
        try:
            return self._tree.enter(self.open(), ident)[0]
        except FileNotFoundError as error:
            raise DatasetRefusedError(RefusalReason.NOT_IN_TRASH, f"{ident} is not in the trash") from error
        except OSError as error:
            raise DatasetRefusedError(RefusalReason.UNSAFE_TRASH, f"{ident}: {error.strerror}") from error

    def load(self, home: Directory) -> TrashFact:
        """Given an entry's directory, return the entry as it is now. Raise RefusedError if it does not say."""
        try:
            with self._tree.at(home) as descriptor:
                file = os.open(_META, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
                with open(file, "rb") as meta:
                    entry = msgspec.json.decode(meta.read(_MAX_META_BYTES), type=TrashFact)
                state = "trashed" if exists(UNIT, descriptor) else "empty"
                if exists(PURGING, descriptor):
                    state = "purging"
        except (OSError, msgspec.DecodeError) as error:
            raise DatasetRefusedError(RefusalReason.UNREADABLE, f"{home.name}: {error}") from error
        return msgspec.structs.replace(entry, state=state)

    def drop(self, home: Directory) -> None:
        """Remove an entry whose unit is gone. Raise OSError if anything else is in there."""
        with self._tree.at(home) as descriptor:
            for name in (_META, _META_NEW):
                if exists(name, descriptor):
                    os.unlink(name, dir_fd=descriptor)
        self._tree.release(home)
        with self._tree.at(self.open()) as descriptor:
            os.rmdir(home.name, dir_fd=descriptor)
            sync(descriptor)


def identity(name: str, descriptor: int) -> tuple[int, int]:
    """Return device and inode of what a directory has under a name. Raise OSError."""
    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    return status.st_dev, status.st_ino


def rename(from_descriptor: int, name: str, to_descriptor: int, to_name: str) -> None:
    """Give something another place, for good, where only we can have put anything. Raise OSError."""
    os.rename(name, to_name, src_dir_fd=from_descriptor, dst_dir_fd=to_descriptor)
    sync(to_descriptor)
    sync(from_descriptor)


def put_back(from_descriptor: int, name: str, to_descriptor: int, to_name: str) -> None:
    """Give something another place where others may be. Raise FileExistsError rather than replace theirs, and OSError.

    A rename would replace a file, so a file gets its second name first; killed in between, it has both, and that is
    no hindrance the next time. A directory that is renamed can only ever replace an empty one.
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
    """Make the names of a directory outlive a power cut, on filesystems that can. Raise OSError."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some FUSE filesystems know no such thing
            raise
