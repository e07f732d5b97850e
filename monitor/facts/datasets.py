"""Datasets below the roots of a node: what is there, how old, whose, in use by whom, and what lies in the trash.

Names on a disk are bytes. `path_text` is the one way they become text, and `path_bytes` the one way back.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import unquote_to_bytes

from monitor.facts.base import BoundedFloat, BoundedInt, Fact

UnitKind = Literal["dir", "file"]


def path_text(raw: bytes) -> str:
    """Given a path as the kernel has it, return it as text that JSON, a log line and a person can take.

    What is not UTF-8, cannot be printed, or is a percent sign is written as %XX. Each path has exactly one text.
    """
    text = raw.decode("utf-8", "surrogateescape")
    if text.isprintable() and "%" not in text:
        return text
    return "".join(char if char.isprintable() and char != "%" else _escaped(char) for char in text)


def path_bytes(text: str) -> bytes:
    """Given what `path_text` wrote, return the path. Raise ValueError if that never wrote it."""
    raw = unquote_to_bytes(text)
    if path_text(raw) != text:
        raise ValueError(f"not the text of a path: {text!r}")
    return raw


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogateescape"))


class UseFact(Fact, frozen=True, kw_only=True):
    """Why a unit counts as in use: open, cwd, root, exe, map, mount, loop; or unknown, when that cannot be told."""

    how: str
    pid: BoundedInt | None = None


class UnitFact(Fact, frozen=True, kw_only=True):
    """One unit: a directory with all that is in it, or a file. `path` is relative to `root`, as `path_text` has it.

    Bytes of a file with several names count once in a scan. `newest_atime` is that of files: reading a directory, as
    this scan does, changes its own. `failures` counts what could not be read; `errors` are the first of them.
    A unit with failures has at least these bytes and may be newer than it seems.
    """

    root: str
    path: str
    kind: UnitKind
    device: int
    inode: int
    owner_uid: BoundedInt
    owner: str | None = None
    allocated_bytes: BoundedInt
    apparent_bytes: BoundedInt
    files: BoundedInt
    newest_atime: BoundedFloat | None = None
    newest_mtime: BoundedFloat
    newest_ctime: BoundedFloat
    pinned: bool = False
    in_use_by: tuple[UseFact, ...] | None = None  # None: nobody has looked
    errors: tuple[str, ...] = ()
    failures: BoundedInt = 0


class ScanFact(Fact, frozen=True, kw_only=True):
    """One look at a root. Only units that were read to their end are in it; `left_out` were over the cap.

    `atime_usable` is False where reading does not set it (noatime, read-only), None where a server decides.
    """

    root: str
    started_at: BoundedFloat
    finished_at: BoundedFloat
    units: tuple[UnitFact, ...] = ()
    left_out: BoundedInt = 0
    entries: BoundedInt = 0
    atime_usable: bool | None = None
    read_only: bool = False
    stopped: bool = False
    errors: tuple[str, ...] = ()
    failures: BoundedInt = 0


class TrashFact(Fact, frozen=True, kw_only=True):
    """One entry of a trash. `state`: trashed; purging (begun, can no longer be restored); empty (nothing was moved)."""

    id: str
    root: str
    path: str
    kind: UnitKind
    device: int
    inode: int
    owner_uid: BoundedInt
    owner: str | None = None
    allocated_bytes: BoundedInt
    files: BoundedInt
    trashed_at: BoundedFloat
    policy: str
    state: str


class PurgeFact(Fact, frozen=True, kw_only=True):
    """One purge of an entry. `deleted` counts files and directories; `finished` is False while anything is left."""

    id: str
    deleted: BoundedInt
    finished: bool
    stopped: bool = False
    errors: tuple[str, ...] = ()
    failures: BoundedInt = 0
