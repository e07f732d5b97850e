"""The allow-listed directories below which datasets may be read and moved."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.mounts import FsLocation, find_mount, mount_id, read_mountinfo
from monitor.agent.mountinfo import host_path
from monitor.facts.datasets import path_text

OPEN_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_ATIME = frozenset((b"noatime", b"ro"))


@dataclass(frozen=True)
class DatasetRoot:
    """An open root. `path` is its path on the node, `locations` where it is in its filesystem."""

    path: str
    descriptor: int
    device: int
    mount: int
    locations: tuple[FsLocation, ...]
    atime_usable: bool | None
    read_only: bool
    proc: str

    @property
    def text(self) -> str:
        """The path, escaped as in facts."""
        return path_text(os.fsencode(self.path))


class DatasetRoots:
    """The allow-list. `rootfs` is the path under which the agent sees the node's root."""

    def __init__(self, allowed: Sequence[str], rootfs: str = "", proc: str = "/proc") -> None:
        for path in allowed:
            if not path.startswith("/") or path == "/" or os.path.normpath(path) != path or "\0" in path:
                raise ValueError(
                    f"a dataset root must be an absolute path below /, without `..` or doubled /: {path!r}"
                )
        for path in allowed:
            if any(other.startswith(path + "/") for other in allowed):
                raise ValueError(f"a dataset root must not lie inside another: below {path!r}")
        self._allowed = tuple(allowed)
        self._rootfs = rootfs
        self._proc = proc

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[DatasetRoot]:
        """Open an allow-listed path. Raise DatasetRefusedError for any other path, and for symbolic links."""
        if path not in self._allowed:
            raise DatasetRefusedError(RefusalReason.NOT_A_ROOT, f"{path!r} is not among the dataset roots")
        agent_path = host_path(self._rootfs, os.fsencode(path))
        descriptor = _open_from_top(agent_path)
        try:
            yield self._describe(path, agent_path, descriptor)
        finally:
            os.close(descriptor)

    def _describe(self, path: str, agent_path: bytes, descriptor: int) -> DatasetRoot:
        ident = mount_id(self._proc, descriptor)
        mount = find_mount(read_mountinfo(f"{self._proc}/self/mountinfo"), ident)
        if mount is None:
            raise DatasetRefusedError(RefusalReason.OTHER_MOUNT, f"{path!r} was unmounted while it was opened")
        point = mount.mount.point.rstrip(b"/")
        if agent_path != point and not agent_path.startswith(point + b"/"):
            raise DatasetRefusedError(RefusalReason.OTHER_MOUNT, f"{path!r} was mounted over while it was opened")
        usable = None if mount.mount.is_network else True
        device = os.fstat(descriptor).st_dev
        locations = [*mount.locations(agent_path.removeprefix(point))]
        # Some filesystems (btrfs) report another device number for files than for mounts.
        locations.append(FsLocation(b"%d:%d" % (os.major(device), os.minor(device)), locations[0].path))
        return DatasetRoot(
            path=path,
            descriptor=descriptor,
            device=device,
            mount=ident,
            locations=tuple(dict.fromkeys(locations)),
            atime_usable=False if mount.options & _NO_ATIME else usable,
            read_only=mount.mount.read_only,
            proc=self._proc,
        )


def _open_from_top(path: bytes) -> int:
    """Open an absolute path one component at a time. Raise DatasetRefusedError for symbolic links."""
    descriptor = os.open("/", OPEN_DIRECTORY_FLAGS)
    for name in path.strip(b"/").split(b"/"):
        try:
            child = os.open(name, OPEN_DIRECTORY_FLAGS, dir_fd=descriptor)
        except OSError as error:
            raise _refusal(error, path, name) from error
        finally:
            os.close(descriptor)
        descriptor = child
    return descriptor


def _refusal(error: OSError, path: bytes, name: bytes) -> DatasetRefusedError:
    component = f"{path_text(name)!r} in {path_text(path)!r}"
    # For O_DIRECTORY with O_NOFOLLOW on a link, the kernel returns ENOTDIR.
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return DatasetRefusedError(RefusalReason.SYMLINK, f"{component} is a symbolic link or not a directory")
    if error.errno == errno.ENOENT:
        return DatasetRefusedError(RefusalReason.GONE, f"{component} does not exist")
    return DatasetRefusedError(RefusalReason.FAILED, f"{component}: {error.strerror}")
