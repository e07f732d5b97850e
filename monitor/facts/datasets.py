"""Datasets below the configured roots of a node: size, age, owner, use, and trash.

File names are bytes. `path_text` and `path_bytes` are the only conversions to and from text.
"""

from __future__ import annotations

from typing import Literal
from urllib.parse import unquote_to_bytes

from monitor.facts.base import BoundedFloat, BoundedInt, BoundedText, Fact, Identifier

UnitKind = Literal["dir", "file"]


def path_text(raw: bytes) -> str:
    """The path as text that is safe in JSON and log lines.

    Bytes that are not UTF-8, unprintable characters and percent signs become %XX. Each path has exactly one text.
    """
    text = raw.decode("utf-8", "surrogateescape")
    if text.isprintable() and "%" not in text:
        return text
    return "".join(char if char.isprintable() and char != "%" else _escaped(char) for char in text)


def path_bytes(text: str) -> bytes:
    """The path of a `path_text` result. Raise ValueError for any other text."""
    raw = unquote_to_bytes(text)
    if path_text(raw) != text:
        raise ValueError(f"not the text of a path: {text!r}")
    return raw


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogateescape"))


class UseFact(Fact, frozen=True, kw_only=True):
    """Why a unit counts as in use: open, cwd, root, exe, map, mount, loop; or unknown if that cannot be determined."""

    how: Identifier
    pid: BoundedInt | None = None


class UnitFact(Fact, frozen=True, kw_only=True):
    """One unit: a directory with its contents, or a file. `path` is relative to `root`, as `path_text` writes it.

    Hard-linked files count once per scan. `newest_atime` is that of files: the scan itself changes the atime of
    directories. `failures` counts unreadable entries, `errors` lists the first of them. A unit with failures has at
    least this size and may be newer than it appears.
    """

    root: BoundedText
    path: BoundedText
    kind: UnitKind
    device: int
    inode: int
    owner_uid: BoundedInt
    owner: BoundedText | None = None
    allocated_bytes: BoundedInt
    apparent_bytes: BoundedInt
    files: BoundedInt
    newest_atime: BoundedFloat | None = None
    newest_mtime: BoundedFloat
    newest_ctime: BoundedFloat
    pinned: bool = False
    in_use_by: tuple[UseFact, ...] | None = None  # None: not checked
    errors: tuple[BoundedText, ...] = ()
    failures: BoundedInt = 0


class ScanFact(Fact, frozen=True, kw_only=True):
    """One scan of a root. It contains only completely read units; `left_out` counts those over the limit.

    `atime_usable` is False where reading does not update atime (noatime, read-only), None where a server decides.
    """

    root: BoundedText
    started_at: BoundedFloat
    finished_at: BoundedFloat
    units: tuple[UnitFact, ...] = ()
    left_out: BoundedInt = 0
    entries: BoundedInt = 0
    atime_usable: bool | None = None
    read_only: bool = False
    stopped: bool = False
    errors: tuple[BoundedText, ...] = ()
    failures: BoundedInt = 0


class TrashFact(Fact, frozen=True, kw_only=True):
    """One trash entry. `state`: trashed; purging (begun, no longer restorable); empty (nothing was moved)."""

    id: Identifier
    root: BoundedText
    path: BoundedText
    kind: UnitKind
    device: int
    inode: int
    owner_uid: BoundedInt
    owner: BoundedText | None = None
    allocated_bytes: BoundedInt
    files: BoundedInt
    trashed_at: BoundedFloat
    policy: Identifier
    state: Identifier


class PurgeFact(Fact, frozen=True, kw_only=True):
    """One purge of an entry. `deleted` counts files and directories; `finished` is False while anything is left."""

    id: Identifier
    deleted: BoundedInt
    finished: bool
    stopped: bool = False
    errors: tuple[BoundedText, ...] = ()
    failures: BoundedInt = 0
