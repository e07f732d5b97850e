"""Refusals of dataset operations."""

from __future__ import annotations

from enum import StrEnum


class RefusalReason(StrEnum):
    """Machine-readable code of a refusal."""

    NOT_A_ROOT = "not-a-root"  # not among the allow-listed roots
    SYMLINK = "symlink"  # a symbolic link where none is allowed
    OTHER_MOUNT = "other-mount"  # another filesystem, or another mount of the same one
    BAD_PATH = "bad-path"  # empty, absolute, or with `..`
    GONE = "gone"  # no longer exists
    CHANGED = "changed"  # differs from the plan, or was used since
    IN_USE = "in-use"
    PINNED = "pinned"
    UNREADABLE = "unreadable"  # cannot be read completely, so it may be in use or pinned
    READ_ONLY = "read-only"
    UNSAFE_TRASH = "unsafe-trash"  # other users can access the trash
    NOT_IN_TRASH = "not-in-trash"
    PURGING = "purging"  # partly deleted
    TOO_YOUNG = "too-young"  # still in its grace period
    EXISTS = "exists"  # the original path is taken
    PARENT_GONE = "parent-gone"
    FAILED = "failed"  # a system call failed


class DatasetRefusedError(Exception):
    """An operation was refused and nothing was changed. `reason` is for programs, the text for a log."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
