"""Mounts of file descriptors, and locations of paths inside filesystems.

A dataset has a different path in each container. Its location, a filesystem and a path in it, is the same for all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from monitor.agent.mountinfo import MountPoint

_ESCAPED = re.compile(rb"\\([0-7]{3})")
_FDINFO_BYTES = 4096


class FsLocation(NamedTuple):
    """A path inside a filesystem, which is identified by its device number or, on a network, also by its server."""

    filesystem: bytes
    path: bytes


class MountEntry(NamedTuple):
    """One line of mountinfo. `id` is the mnt_id in /proc/<pid>/fdinfo."""

    id: int
    options: frozenset[bytes]
    mount: MountPoint

    def locations(self, path: bytes) -> Iterator[FsLocation]:
        """Possible locations of a path relative to the mount point.

        A directory of an export can be mounted by itself: its device number may differ from that of the whole export,
        but the server's name for it is the same.
        """
        mount = self.mount
        yield FsLocation(mount.number, join_path(mount.root, path))
        server, colon, exported = mount.source.partition(b":/")
        if mount.is_network and colon:
            yield FsLocation(server, join_path(b"/" + exported, join_path(mount.root, path)))


def join_path(base: bytes, path: bytes) -> bytes:
    """Join an absolute and a relative path, without a trailing slash."""
    return b"/" + b"/".join(part for part in (base.strip(b"/"), path.strip(b"/")) if part)


def parse_mountinfo(raw: bytes) -> Iterator[MountEntry]:
    """All mounts in a mountinfo. Malformed lines are skipped."""
    for line in raw.split(b"\n"):
        head, _, tail = line.partition(b" - ")
        fields, rest = head.split(b" "), tail.split(b" ")
        if len(fields) < 6 or len(rest) < 2 or not fields[0].isdigit():
            continue
        options = frozenset(fields[5].split(b",")) | frozenset(rest[2].split(b",") if len(rest) > 2 else ())
        root, point, source = (_unescape(field) for field in (fields[3], fields[4], rest[1]))
        mount = MountPoint(fields[2], root, point, rest[0], source, b"ro" in options)
        yield MountEntry(int(fields[0]), options, mount)


def read_mountinfo(path: str) -> tuple[MountEntry, ...]:
    """All mounts in a mountinfo file. Raise OSError."""
    with open(path, "rb") as file:
        return tuple(parse_mountinfo(file.read()))


def mount_id(proc: str, descriptor: int) -> int:
    """Id of the mount through which a descriptor of this process was opened. Raise OSError.

    Unlike st_dev it distinguishes bind mounts of one filesystem, and it is free of races: it belongs to the descriptor,
    not to a path.
    """
    file = os.open(f"{proc}/self/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return parse_mount_id(os.read(file, _FDINFO_BYTES))
    finally:
        os.close(file)


def parse_mount_id(raw: bytes) -> int:
    """The mnt_id in an fdinfo. Raise OSError if it is missing."""
    _, _, rest = raw.partition(b"mnt_id:")
    digits = rest.split(None, 1)[:1]
    if not digits or not digits[0].isdigit():
        raise OSError("this kernel does not report the mount of a descriptor")
    return int(digits[0])


def find_mount(mounts: Iterable[MountEntry], ident: int) -> MountEntry | None:
    """The mount with this id, or None."""
    return next((mount for mount in mounts if mount.id == ident), None)


def _unescape(field: bytes) -> bytes:
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), field)
