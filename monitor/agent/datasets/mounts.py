"""Which mount a descriptor is on, and where a path lies inside its filesystem, whoever looks at it.

A dataset has another path in every container. What is the same for all is its place: filesystem, and path in there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from monitor.agent.mountinfo import Mount

_ESCAPED = re.compile(rb"\\([0-7]{3})")
_FDINFO_BYTES = 4096


class FsLocation(NamedTuple):
    """A path inside a filesystem. `filesystem` is its device number, or for a network one also its server."""

    filesystem: bytes
    path: bytes


class MountEntry(NamedTuple):
    """One line of a mountinfo. `id` is what /proc/<pid>/fdinfo calls it."""

    id: int
    options: frozenset[bytes]
    mount: Mount

    def places(self, path: bytes) -> Iterator[FsLocation]:
        """Given a path relative to the mount point, yield the places that it may be.

        A directory of an export can be mounted by itself: its device number need not be that of the whole export,
        but the server's name for it is the same.
        """
        mount = self.mount
        yield FsLocation(mount.number, join_path(mount.root, path))
        server, colon, exported = mount.source.partition(b":/")
        if mount.is_network and colon:
            yield FsLocation(server, join_path(b"/" + exported, join_path(mount.root, path)))


def join_path(base: bytes, path: bytes) -> bytes:
    """Given an absolute path and one relative to it, return both as one, without a slash at its end."""
    return b"/" + b"/".join(part for part in (base.strip(b"/"), path.strip(b"/")) if part)


def parse_mountinfo(raw: bytes) -> Iterator[MountEntry]:
    """Given a mountinfo, yield all of it. Skip lines that are no mount."""
    for line in raw.split(b"\n"):
        head, _, tail = line.partition(b" - ")
        fields, rest = head.split(b" "), tail.split(b" ")
        if len(fields) < 6 or len(rest) < 2 or not fields[0].isdigit():
            continue
        options = frozenset(fields[5].split(b",")) | frozenset(rest[2].split(b",") if len(rest) > 2 else ())
        root, point, source = (_unescape(field) for field in (fields[3], fields[4], rest[1]))
        mount = Mount(fields[2], root, point, rest[0], source, b"ro" in options)
        yield MountEntry(int(fields[0]), options, mount)


def read_mountinfo(path: str) -> tuple[MountEntry, ...]:
    """Given the path of a mountinfo, return its mounts. Raise OSError."""
    with open(path, "rb") as file:
        return tuple(parse_mountinfo(file.read()))


def mount_id(proc: str, descriptor: int) -> int:
    """Given an open descriptor of ours, return the id of the mount it was opened through. Raise OSError.

    This also tells bind mounts of one filesystem apart, which st_dev does not, and cannot be raced: it speaks of the
    descriptor, not of a path.
    """
    file = os.open(f"{proc}/self/fdinfo/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return parse_mount_id(os.read(file, _FDINFO_BYTES))
    finally:
        os.close(file)


def parse_mount_id(raw: bytes) -> int:
    """Given an fdinfo, return the id of the mount in it. Raise OSError if it has none."""
    _, _, rest = raw.partition(b"mnt_id:")
    ident = rest.split(None, 1)[:1]
    if not ident or not ident[0].isdigit():
        raise OSError("this kernel does not say which mount a descriptor is on")
    return int(ident[0])


def find_mount(mounts: Iterable[MountEntry], ident: int) -> MountEntry | None:
    """Return the mount with that id, or None."""
    return next((mount for mount in mounts if mount.id == ident), None)


def _unescape(field: bytes) -> bytes:
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 8) & 0xFF]), field)
