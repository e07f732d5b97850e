"""Checks, immediately before a unit is moved, that it still matches the plan."""

from __future__ import annotations

import errno
import os
import stat
import threading
from dataclasses import dataclass

from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.rate_limit import ScanRateLimiter
from monitor.agent.datasets.root_scan import FindUses, locations_of, uses_at
from monitor.agent.datasets.roots import DatasetRoot
from monitor.agent.datasets.scan import ScanUnit, UnitScan
from monitor.agent.datasets.tree import Directory, DirectoryTree, OtherMountError
from monitor.agent.datasets.units import TRASH_DIRECTORY
from monitor.facts.datasets import UseFact, path_bytes, path_text


@dataclass(frozen=True)
class PlannedUnit:
    """A unit as planned: `path` is escaped as in facts, `newest` is the newest of its times."""

    path: str
    device: int
    inode: int
    newest: float


def split_path(path: str) -> list[str]:
    """Components of an escaped path relative to a root. Raise DatasetRefusedError unless it stays below the root."""
    try:
        names = os.fsdecode(path_bytes(path)).split("/")
    except ValueError as error:
        raise DatasetRefusedError(RefusalReason.BAD_PATH, str(error)) from error
    if any(name in ("", ".", "..") or "\0" in name for name in names) or names[0] == TRASH_DIRECTORY:
        raise DatasetRefusedError(RefusalReason.BAD_PATH, f"not the path of a unit: {path!r}")
    return names


def enter_parent(tree: DirectoryTree, path: str) -> Directory:
    """Parent directory of a unit. Raise DatasetRefusedError if it cannot be opened."""
    directory = tree.top
    for name in split_path(path)[:-1]:
        try:
            directory = tree.enter(directory, name)[0]
        except OSError as error:
            raise _refusal(error, path_text(os.fsencode(directory.below(name)))) from error
    return directory


def check_unchanged(
    tree: DirectoryTree,
    root: DatasetRoot,
    parent: Directory,
    planned: PlannedUnit,
    find_uses: FindUses,
    stop: threading.Event,
) -> tuple[ScanUnit, os.stat_result]:
    """The unit as it is now. Raise DatasetRefusedError if it was replaced, used or pinned since, or is in use."""
    unit = _find(tree, parent, planned)
    UnitScan(tree, ScanRateLimiter(None, stop), stop).run([unit])
    totals, status = unit.totals, unit.stat
    if totals.errors.count:
        raise DatasetRefusedError(RefusalReason.UNREADABLE, "; ".join(totals.errors.first))
    if unit.unread or status is None:
        raise DatasetRefusedError(RefusalReason.FAILED, "stopped before it was read completely")
    if (status.st_dev, status.st_ino) != (planned.device, planned.inode):
        raise DatasetRefusedError(RefusalReason.CHANGED, f"{planned.path} was replaced while it was read")
    if totals.pinned:
        raise DatasetRefusedError(RefusalReason.PINNED, f"{planned.path} contains a .keep file")
    if max(totals.mtime, totals.ctime, totals.atime or 0.0) > planned.newest:
        raise DatasetRefusedError(RefusalReason.CHANGED, f"{planned.path} was changed or read since it was planned")
    uses = uses_of(root, path_bytes(planned.path), find_uses)
    if uses:
        raise DatasetRefusedError(RefusalReason.IN_USE, f"{planned.path} is in use: {uses[0]}")
    return unit, status


def uses_of(root: DatasetRoot, path: bytes, find_uses: FindUses) -> tuple[UseFact, ...]:
    """Uses of a path relative to a root: a use of kind `unknown` if they cannot be determined."""
    locations = locations_of(root, path)
    try:
        return uses_at(locations, find_uses(locations))
    except OSError:
        return (UseFact(how="unknown"),)


def _find(tree: DirectoryTree, parent: Directory, planned: PlannedUnit) -> ScanUnit:
    name = split_path(planned.path)[-1]
    try:
        with tree.at(parent) as descriptor:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError as error:
        raise DatasetRefusedError(RefusalReason.GONE, f"{planned.path} is gone") from error
    except OSError as error:
        raise DatasetRefusedError(RefusalReason.UNREADABLE, f"{planned.path}: {error.strerror}") from error
    if (status.st_dev, status.st_ino) != (planned.device, planned.inode):
        raise DatasetRefusedError(RefusalReason.CHANGED, f"{planned.path} is not the one that was planned")
    return ScanUnit(parent, name, stat.S_ISDIR(status.st_mode))


def _refusal(error: OSError, path: str) -> DatasetRefusedError:
    if isinstance(error, FileNotFoundError):
        hint = "create it (mkdir -p) with its former owner and try again"
        return DatasetRefusedError(RefusalReason.PARENT_GONE, f"the directory {path} is gone: {hint}")
    if isinstance(error, OtherMountError):
        return DatasetRefusedError(RefusalReason.OTHER_MOUNT, f"{path}: {error.strerror}")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return DatasetRefusedError(RefusalReason.SYMLINK, f"{path} is a symbolic link or not a directory")
    return DatasetRefusedError(RefusalReason.FAILED, f"{path}: {error.strerror}")
