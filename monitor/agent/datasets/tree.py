"""A directory tree accessed through file descriptors, with a bounded number of them open, whatever its depth.

A directory is opened by its name relative to its parent's descriptor, must not be a link, and must be on the root's
mount. A directory whose descriptor was evicted is opened again from above, name by name, and must be the same inode:
`..` would lead out of the tree if the directory was moved in the meantime.
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
    """A directory is not the one that was opened before."""


class OtherMountError(OSError):
    """A directory belongs to another mount."""


class Directory:
    """One directory of a tree. Compared by identity."""

    __slots__ = ("descriptor", "inode", "name", "parent", "users")

    def __init__(self, parent: Directory | None, name: str, inode: int) -> None:
        self.parent = parent
        self.name = name
        self.inode = inode
        self.descriptor: int | None = None
        self.users = 0

    def path(self) -> str:
        """Path relative to the root."""
        names, directory = [], self
        while directory.parent is not None:
            names.append(directory.name)
            directory = directory.parent
        return "/".join(reversed(names))

    def below(self, name: str) -> str:
        """Path of an entry of the directory, relative to the root."""
        path = self.path()
        return f"{path}/{name}" if path else name


class DirectoryTree:
    """The directories below a root. Thread-safe and reference-counted: the last `leave` closes it."""

    def __init__(self, root: DatasetRoot, max_open: int = MAX_OPEN_DIRECTORIES) -> None:
        self._device = root.device
        self._mount = root.mount
        self._proc = root.proc
        self._max_open = max_open
        self._lock = threading.Lock()
        self._open: OrderedDict[Directory, None] = OrderedDict()  # least recently used first
        self._threads = 1
        self.top = Directory(None, "", os.fstat(root.descriptor).st_ino)
        # A duplicate: a thread that hangs on a dead NAS may return after the root was closed.
        self.top.descriptor = os.dup(root.descriptor)

    def __enter__(self) -> DirectoryTree:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def join(self) -> None:
        """Register one more thread that uses the tree."""
        with self._lock:
            self._threads += 1

    def leave(self) -> None:
        """Unregister a thread. The last one closes all descriptors."""
        with self._lock:
            self._threads -= 1
            if self._threads == 0:
                for directory in (*self._open, self.top):
                    _close(directory)
                self._open.clear()

    @contextmanager
    def at(self, directory: Directory) -> Iterator[int]:
        """Descriptor of a directory, not evicted inside the block. Raise OSError, such as DirectoryReplacedError."""
        with self._lock:
            descriptor = self._descriptor(directory)
            directory.users += 1
        try:
            yield descriptor
        finally:
            with self._lock:
                directory.users -= 1

    def enter(self, parent: Directory, name: str) -> tuple[Directory, os.stat_result]:
        """Open a subdirectory by name. Raise OSError, such as OtherMountError."""
        with self.at(parent) as parent_descriptor:
            descriptor = os.open(name, OPEN_DIRECTORY_FLAGS, dir_fd=parent_descriptor)
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
            self._add(directory)
        return directory, stat

    def release(self, directory: Directory) -> None:
        """Close a directory that is no longer needed."""
        with self._lock:
            if directory in self._open and not directory.users:
                del self._open[directory]
                _close(directory)

    def _descriptor(self, directory: Directory) -> int:
        """Descriptor of a directory, reopened from its nearest open parent if it was evicted."""
        if directory.descriptor is None:
            closed = []
            ancestor = directory
            while ancestor.descriptor is None and ancestor.parent is not None:
                closed.append(ancestor)
                ancestor = ancestor.parent
            for child in reversed(closed):
                self._reopen(child)
        elif directory in self._open:
            self._open.move_to_end(directory)
        if directory.descriptor is None:
            raise DirectoryReplacedError(errno.EBADF, "the tree is closed")
        return directory.descriptor

    def _reopen(self, directory: Directory) -> None:
        if directory.parent is None or directory.parent.descriptor is None:
            raise DirectoryReplacedError(errno.EBADF, "the tree is closed")
        descriptor = os.open(directory.name, OPEN_DIRECTORY_FLAGS, dir_fd=directory.parent.descriptor)
        stat = os.fstat(descriptor)
        if (stat.st_dev, stat.st_ino) != (self._device, directory.inode):
            os.close(descriptor)
            raise DirectoryReplacedError(errno.ESTALE, "the directory was replaced")
        directory.descriptor = descriptor
        self._add(directory)

    def _add(self, directory: Directory) -> None:
        """Register an open directory, and evict the least recently used one if there are too many."""
        self._open[directory] = None
        if len(self._open) > self._max_open:
            idle = next((other for other in self._open if not other.users and other is not directory), None)
            if idle is not None:
                del self._open[idle]
                _close(idle)


def exists(name: str, descriptor: int) -> bool:
    """Whether a directory has an entry of this name. Raise OSError."""
    try:
        os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _close(directory: Directory) -> None:
    if directory.descriptor is not None:
        os.close(directory.descriptor)
        directory.descriptor = None
