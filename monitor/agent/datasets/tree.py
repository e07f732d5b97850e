"""A tree of directories held by descriptors. However deep it is, only some of them are open at a time.

A directory is opened by its name in its parent's descriptor, must not be a link, and must be on the root's own mount.
When a descriptor had to be closed for want of room, the directory is opened again from above by the names that led to
it, and must be the same one: `..` would lead out of the tree if somebody has moved the directory meanwhile.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from monitor.agent.datasets.mounts import mount_id
from monitor.agent.datasets.roots import OPEN_DIRECTORY_FLAGS, DatasetRoot

MAX_OPEN_DIRECTORIES = 192


class DirectoryReplacedError(OSError):
    """A directory is no longer the one that was looked at before."""


class OtherMountError(OSError):
    """A directory belongs to another mount."""


class Directory:
    """One directory of the tree. Compared by identity."""

    __slots__ = ("descriptor", "inode", "name", "parent", "users")

    def __init__(self, parent: Directory | None, name: str, inode: int) -> None:
        self.parent = parent
        self.name = name
        self.inode = inode
        self.descriptor: int | None = None
        self.users = 0

    def path(self) -> str:
        """The names that lead to it from the root."""
        names, here = [], self
        while here.parent is not None:
            names.append(here.name)
            here = here.parent
        return "/".join(reversed(names))

    def below(self, name: str) -> str:
        """The path of something in it."""
        path = self.path()
        return f"{path}/{name}" if path else name


class DirectoryTree:
    """The directories below one root. Safe to use from several threads; the last one to `leave` closes it."""

    def __init__(self, root: DatasetRoot, open_at_most: int = MAX_OPEN_DIRECTORIES) -> None:
        self._device = root.device
        self._mount = root.mount
        self._proc = root.proc
        self._open_at_most = open_at_most
        self._lock = threading.Lock()
        self._open: OrderedDict[Directory, None] = OrderedDict()  # the longest unused first
        self._visitors = 1
        self.top = Directory(None, "", os.fstat(root.descriptor).st_ino)
        # A copy: a thread that hangs on a dead NAS may come back after the root was closed.
        self.top.descriptor = os.dup(root.descriptor)

    def __enter__(self) -> DirectoryTree:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def join(self) -> None:
        """Say that one more thread uses it."""
        with self._lock:
            self._visitors += 1

    def leave(self) -> None:
        """Say that a thread is through with it. Close everything after the last one."""
        with self._lock:
            self._visitors -= 1
            if self._visitors == 0:
                for directory in (*self._open, self.top):
                    _close(directory)
                self._open.clear()

    @contextmanager
    def at(self, directory: Directory) -> Iterator[int]:
        """Give a directory's descriptor, which stays open meanwhile. Raise OSError, ChangedError among them."""
        with self._lock:
            descriptor = self._reach(directory)
            directory.users += 1
        try:
            yield descriptor
        finally:
            with self._lock:
                directory.users -= 1

    def enter(self, parent: Directory, name: str) -> tuple[Directory, os.stat_result]:
        """Given a name in a directory, return the directory of that name. Raise OSError, OtherMountError among them."""
        with self.at(parent) as outer:
            descriptor = os.open(name, OPEN_DIRECTORY_FLAGS, dir_fd=outer)
        try:
            stat = os.fstat(descriptor)
            if stat.st_dev != self._device or mount_id(self._proc, descriptor) != self._mount:
                raise OtherMountError(errno.EXDEV, "another filesystem is mounted here")
        except BaseException:
            os.close(descriptor)
            raise
        directory = Directory(parent, name, stat.st_ino)
        directory.descriptor = descriptor
        with self._lock:
            self._keep(directory)
        return directory, stat

    def release(self, directory: Directory) -> None:
        """Close a directory that is no longer needed."""
        with self._lock:
            if directory in self._open and not directory.users:
                del self._open[directory]
                _close(directory)

    def _reach(self, directory: Directory) -> int:
        """Return its descriptor, opening it again from the nearest open directory above it if need be."""
        if directory.descriptor is None:
            way = []
            here = directory
            while here.descriptor is None and here.parent is not None:
                way.append(here)
                here = here.parent
            for step in reversed(way):
                self._open_again(step)
        elif directory in self._open:
            self._open.move_to_end(directory)
        if directory.descriptor is None:
            raise DirectoryReplacedError(errno.EBADF, "the tree is closed")
        return directory.descriptor

    def _open_again(self, directory: Directory) -> None:
        if directory.parent is None or directory.parent.descriptor is None:
            raise DirectoryReplacedError(errno.EBADF, "the tree is closed")
        descriptor = os.open(directory.name, OPEN_DIRECTORY_FLAGS, dir_fd=directory.parent.descriptor)
        stat = os.fstat(descriptor)
        if (stat.st_dev, stat.st_ino) != (self._device, directory.inode):
            os.close(descriptor)
            raise DirectoryReplacedError(errno.ESTALE, "it was replaced meanwhile")
        directory.descriptor = descriptor
        self._keep(directory)

    def _keep(self, directory: Directory) -> None:
        """Remember an open directory, and close those that were not used for longest."""
        self._open[directory] = None
        if len(self._open) > self._open_at_most:
            idle = next((other for other in self._open if not other.users and other is not directory), None)
            if idle is not None:
                del self._open[idle]
                _close(idle)


def exists(name: str, descriptor: int) -> bool:
    """Return whether a directory has that name. Raise OSError if it does not say."""
    try:
        os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _close(directory: Directory) -> None:
    if directory.descriptor is not None:
        os.close(directory.descriptor)
        directory.descriptor = None
