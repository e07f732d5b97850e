"""Deletes a directory tree of any depth, through directory descriptors only and without crossing mounts.

A deletion can be stopped or killed at any time and run again. Entries that cannot be deleted are reported and kept.
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

Progress = Callable[[int], None]  # called with the number of deleted entries
_CHUNK_ITEMS = 256
# Errors of unlink on a directory: of Linux and of POSIX.
_IS_DIRECTORY = (errno.EISDIR, errno.EPERM)
# Errors of rmdir while an entry is left, which was reported when it could not be deleted.
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


@dataclass
class DeletionResult:
    """Progress of a deletion; `finished` if nothing is left."""

    entries: int = 0
    finished: bool = False
    stopped: bool = False
    errors: PathErrors = field(default_factory=PathErrors)


@dataclass
class _PendingDirectory:
    """A directory whose files are deleted, and its subdirectories still to be deleted."""

    directory: Directory
    subdirectories: list[str]


class Deletion:
    """Deletes one entry of a directory. `run` it once."""

    def __init__(self, tree: DirectoryTree, stop: threading.Event, progress: Progress | None = None) -> None:
        self._tree = tree
        self._stop = stop
        self._progress = progress
        self._result = DeletionResult()

    def run(self, parent: Directory, name: str) -> DeletionResult:
        """Delete an entry, a directory with all its contents. A missing entry counts as deleted."""
        if not self._unlink(parent, name):
            self._delete_directories(parent, name)
        self._result.stopped = self._stop.is_set()
        with self._tree.at(parent) as descriptor:
            self._result.finished = not exists(name, descriptor)
        return self._result

    def _delete_directories(self, parent: Directory, name: str) -> None:
        """Delete depth-first with an explicit stack: trees can be deeper than Python's recursion limit."""
        stack: list[_PendingDirectory] = []
        self._enter(parent, name, stack)
        while stack and not self._stop.is_set():
            pending = stack[-1]
            if pending.subdirectories:
                self._enter(pending.directory, pending.subdirectories.pop(), stack)
            else:
                stack.pop()
                self._remove(pending.directory)

    def _enter(self, parent: Directory, name: str, stack: list[_PendingDirectory]) -> None:
        """Open a directory, delete its files, and push it with its subdirectories."""
        try:
            directory = self._tree.enter(parent, name)[0]
            stack.append(_PendingDirectory(directory, self._delete_files(directory)))
        except FileNotFoundError:
            return
        except OSError as error:
            # Another mount, no permission, or replaced by a link, which is deleted like a file.
            if error.errno not in (errno.ENOTDIR, errno.ELOOP) or not self._unlink(parent, name):
                self._result.errors.add(parent.below(name), error)

    def _delete_files(self, directory: Directory) -> list[str]:
        """Delete the files of a directory and return the names of its subdirectories."""
        subdirectories: list[str] = []
        with self._tree.at(directory) as descriptor, os.scandir(descriptor) as entries:
            while not self._stop.is_set():
                chunk = list(itertools.islice(entries, _CHUNK_ITEMS))
                subdirectories += [
                    entry.name
                    for entry in chunk
                    if entry.is_dir(follow_symlinks=False) or not self._unlink_at(descriptor, directory, entry.name)
                ]
                if self._progress is not None:
                    self._progress(self._result.entries)
                if len(chunk) < _CHUNK_ITEMS:
                    break
        return subdirectories

    def _unlink(self, parent: Directory, name: str) -> bool:
        try:
            with self._tree.at(parent) as descriptor:
                return self._unlink_at(descriptor, parent, name)
        except OSError as error:
            self._result.errors.add(parent.below(name), error)
            return True

    def _unlink_at(self, descriptor: int, parent: Directory, name: str) -> bool:
        """Delete a file, or report why it cannot be deleted. Return False if it is a directory."""
        try:
            os.unlink(name, dir_fd=descriptor)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno in _IS_DIRECTORY and _is_directory(name, descriptor):
                return False
            self._result.errors.add(parent.below(name), error)
            return True
        self._result.entries += 1
        return True

    def _remove(self, directory: Directory) -> None:
        if directory.parent is None:
            raise ValueError("a root is never removed")
        self._tree.release(directory)
        errors_before = self._result.errors.count
        try:
            with self._tree.at(directory.parent) as descriptor:
                os.rmdir(directory.name, dir_fd=descriptor)
        except FileNotFoundError:
            return
        except OSError as error:
            if not (error.errno in _NOT_EMPTY and errors_before):
                self._result.errors.add(directory.path(), error)
            return
        self._result.entries += 1


def _is_directory(name: str, descriptor: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    except OSError:
        return False
