"""Whether a unit still is what the plan saw, asked right before it is moved."""

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
    """What the plan knew of a unit: `newest` is the newest of its times. `path` is as facts have it."""

    path: str
    device: int
    inode: int
    newest: float


def split_path(path: str) -> list[str]:
    """Given the text of a path relative to a root, return its names. Raise RefusedError unless it stays inside."""
    try:
        names = os.fsdecode(path_bytes(path)).split("/")
    except ValueError as error:
        raise DatasetRefusedError(RefusalReason.BAD_PATH, str(error)) from error
    if any(name in ("", ".", "..") or "\0" in name for name in names) or names[0] == TRASH_DIRECTORY:
        raise DatasetRefusedError(RefusalReason.BAD_PATH, f"not the path of a unit: {path!r}")
    return names


def enter_parent(tree: DirectoryTree, path: str) -> Directory:
    """Given a unit's path, return the directory it is in, or was. Raise RefusedError if that cannot be entered."""
    here = tree.top
    for name in split_path(path)[:-1]:
        try:
            here = tree.enter(here, name)[0]
        except OSError as error:
            raise _refusal(error, path_text(os.fsencode(here.below(name)))) from error
    return here


def check_unchanged(
    tree: DirectoryTree,
    root: DatasetRoot,
    parent: Directory,
    planned: PlannedUnit,
    in_use: FindUses,
    stop: threading.Event,
) -> tuple[ScanUnit, os.stat_result]:
    """Return the unit as it is now. Raise RefusedError if it is another one, was used or pinned since, or is in use."""
    unit = _find(tree, parent, planned)
    UnitScan(tree, ScanRateLimiter(None, stop), stop).run([unit])
    tally, found = unit.tally, unit.stat
    if tally.errors.count:
        raise DatasetRefusedError(RefusalReason.UNREADABLE, "; ".join(tally.errors.first))
    if unit.unread or found is None:
        raise DatasetRefusedError(RefusalReason.FAILED, "stopped before it was read whole")
    if (found.st_dev, found.st_ino) != (planned.device, planned.inode):
        raise DatasetRefusedError(RefusalReason.CHANGED, f"{planned.path} was replaced while it was read")
    if tally.pinned:
        raise DatasetRefusedError(RefusalReason.PINNED, f"{planned.path} has a .keep")
    if max(tally.mtime, tally.ctime, tally.atime or 0.0) > planned.newest:
        raise DatasetRefusedError(RefusalReason.CHANGED, f"{planned.path} was changed or read since it was planned")
    users = uses_of(root, path_bytes(planned.path), in_use)
    if users:
        raise DatasetRefusedError(RefusalReason.IN_USE, f"{planned.path} is used: {users[0]}")
    return unit, found


def uses_of(root: DatasetRoot, path: bytes, in_use: FindUses) -> tuple[UseFact, ...]:
    """Given a path relative to a root, return who uses that: somebody unknown if it cannot be told."""
    places = locations_of(root, path)
    try:
        return uses_at(places, in_use(places))
    except OSError:
        return (UseFact(how="unknown"),)


def _find(tree: DirectoryTree, parent: Directory, planned: PlannedUnit) -> ScanUnit:
    name = split_path(planned.path)[-1]
    try:
        with tree.at(parent) as descriptor:
            found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError as error:
        raise DatasetRefusedError(RefusalReason.GONE, f"{planned.path} is gone") from error
    except OSError as error:
        raise DatasetRefusedError(RefusalReason.UNREADABLE, f"{planned.path}: {error.strerror}") from error
    if (found.st_dev, found.st_ino) != (planned.device, planned.inode):
        raise DatasetRefusedError(RefusalReason.CHANGED, f"{planned.path} is not the one that was planned")
    return ScanUnit(parent, name, stat.S_ISDIR(found.st_mode))


def _refusal(error: OSError, where: str) -> DatasetRefusedError:
    if isinstance(error, FileNotFoundError):
        hint = "make it (mkdir -p) with the owner it had, and try again"
        return DatasetRefusedError(RefusalReason.PARENT_GONE, f"the directory {where} is gone: {hint}")
    if isinstance(error, OtherMountError):
        return DatasetRefusedError(RefusalReason.OTHER_MOUNT, f"{where}: {error.strerror}")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return DatasetRefusedError(RefusalReason.SYMLINK, f"{where} is a symbolic link or not a directory")
    return DatasetRefusedError(RefusalReason.FAILED, f"{where}: {error.strerror}")
