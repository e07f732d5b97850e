"""Why something is not done."""

from __future__ import annotations

from enum import StrEnum


class RefusalReason(StrEnum):
    """The word for each refusal; whoever shows it to a person has the sentence."""

    NOT_A_ROOT = "not-a-root"  # not among the allow-listed roots
    SYMLINK = "symlink"  # a symbolic link where there must be none
    OTHER_MOUNT = "other-mount"  # another filesystem, or another view of the same
    BAD_PATH = "bad-path"  # empty, absolute, or with `..`
    GONE = "gone"  # no longer there
    CHANGED = "changed"  # no longer what the plan saw, or used since
    IN_USE = "in-use"
    PINNED = "pinned"
    UNREADABLE = "unreadable"  # cannot be read whole, so that it may be in use or pinned
    READ_ONLY = "read-only"
    UNSAFE_TRASH = "unsafe-trash"  # the trash is not ours alone
    NOT_IN_TRASH = "not-in-trash"
    PURGING = "purging"  # partly deleted
    TOO_YOUNG = "too-young"  # its grace is not over
    EXISTS = "exists"  # something else is there by now
    PARENT_GONE = "parent-gone"
    FAILED = "failed"  # the system says no


class DatasetRefusedError(Exception):
    """Nothing was changed. `reason` is for programs, the text for a log."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
