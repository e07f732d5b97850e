"""Deletes a tree for good: by directory descriptors only, across no mount, however deep it is.

It can be stopped, or killed, at any moment and be called again. What cannot be deleted is reported and left.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from monitor.agent.datasets.totals import PathErrors
from monitor.agent.datasets.tree import Directory, DirectoryTree, exists

_CHUNK_ITEMS = 256
# What unlink says of a directory: Linux the first, POSIX the second.
_IS_DIRECTORY = (errno.EISDIR, errno.EPERM)
# What rmdir says when something is left in there, which was reported when it could not be deleted.
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


@dataclass
class DeletionResult:
    """How far a deletion came. `finished` when nothing is left."""

    entries: int = 0
    finished: bool = False
    stopped: bool = False
    errors: PathErrors = field(default_factory=PathErrors)


@dataclass
class _PendingDirectory:
    """A directory that is being emptied, and the directories in it that are still to be."""

    directory: Directory
    inner: list[str]


class Deletion:
    """One deletion of what has a name in a directory. `run` it once."""

    def __init__(
        self, tree: DirectoryTree, stop: threading.Event, progress: Callable[[int], None] | None = None
    ) -> None:
        self._tree = tree
        self._stop = stop
        self._progress = progress
        self._done = DeletionResult()

    def run(self, parent: Directory, name: str) -> DeletionResult:
        """Delete it, a directory with all that is in it. What is not there is deleted already."""
        if not self._unlink(parent, name):
            self._delete_directories(parent, name)
        self._done.stopped = self._stop.is_set()
        with self._tree.at(parent) as descriptor:
            self._done.finished = not exists(name, descriptor)
        return self._done

    def _delete_directories(self, parent: Directory, name: str) -> None:
        """Work down and up again on a list of levels: trees are deeper than the interpreter may recurse."""
        levels: list[_PendingDirectory] = []
        self._enter(parent, name, levels)
        while levels and not self._stop.is_set():
            level = levels[-1]
            if level.inner:
                self._enter(level.directory, level.inner.pop(), levels)
            else:
                levels.pop()
                self._remove(level.directory)

    def _enter(self, parent: Directory, name: str, levels: list[_PendingDirectory]) -> None:
        """Open a directory, delete the files in it, and put it in line with the directories in it."""
        try:
            directory = self._tree.enter(parent, name)[0]
            levels.append(_PendingDirectory(directory, self._empty(directory)))
        except FileNotFoundError:
            return
        except OSError as error:
            # Another mount, no permission, or swapped for a link: a link goes like any file.
            if error.errno not in (errno.ENOTDIR, errno.ELOOP) or not self._unlink(parent, name):
                self._done.errors.add(parent.below(name), error)

    def _empty(self, directory: Directory) -> list[str]:
        """Delete the files of a directory and return the names of the directories in it."""
        inner: list[str] = []
        with self._tree.at(directory) as descriptor, os.scandir(descriptor) as entries:
            while not self._stop.is_set():
                chunk = list(itertools.islice(entries, _CHUNK_ITEMS))
                inner += [
                    entry.name
                    for entry in chunk
                    if entry.is_dir(follow_symlinks=False) or not self._unlink_at(descriptor, directory, entry.name)
                ]
                if self._progress is not None:
                    self._progress(self._done.entries)
                if len(chunk) < _CHUNK_ITEMS:
                    break
        return inner

    def _unlink(self, parent: Directory, name: str) -> bool:
        try:
            with self._tree.at(parent) as descriptor:
                return self._unlink_at(descriptor, parent, name)
        except OSError as error:
            self._done.errors.add(parent.below(name), error)
            return True

    def _unlink_at(self, descriptor: int, parent: Directory, name: str) -> bool:
        """Delete a file. Return False if it is a directory; report what cannot be deleted."""
        try:
            os.unlink(name, dir_fd=descriptor)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno in _IS_DIRECTORY and _is_directory(name, descriptor):
                return False
            self._done.errors.add(parent.below(name), error)
            return True
        self._done.entries += 1
        return True

    def _remove(self, directory: Directory) -> None:
        """Remove a directory that was emptied."""
        if directory.parent is None:
            raise ValueError("a root is never removed")
        self._tree.release(directory)
        known = self._done.errors.count
        try:
            with self._tree.at(directory.parent) as descriptor:
                os.rmdir(directory.name, dir_fd=descriptor)
        except FileNotFoundError:
            return
        except OSError as error:
            if not (error.errno in _NOT_EMPTY and known):
                self._done.errors.add(directory.path(), error)
            return
        self._done.entries += 1


def _is_directory(name: str, descriptor: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    except OSError:
        return False
