"""The directories below which datasets may be read and moved: those in the settings, and nothing else."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.agent.datasets.mounts import FsLocation, find_mount, mount_id, read_mountinfo
from monitor.agent.mountinfo import below
from monitor.facts.datasets import path_text

OPEN_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_ATIME = frozenset((b"noatime", b"ro"))


@dataclass(frozen=True)
class DatasetRoot:
    """An open root. `path` is the node's name for it, `places` where it lies in its filesystem."""

    path: str
    descriptor: int
    device: int
    mount: int
    places: tuple[FsLocation, ...]
    atime_usable: bool | None
    read_only: bool
    proc: str

    @property
    def text(self) -> str:
        """The path as it is written in facts."""
        return path_text(os.fsencode(self.path))


class DatasetRoots:
    """The allow-list. `rootfs` is where the agent sees the node's own root."""

    def __init__(self, allowed: Sequence[str], rootfs: str = "", proc: str = "/proc") -> None:
        for path in allowed:
            if not path.startswith("/") or path == "/" or os.path.normpath(path) != path or "\0" in path:
                raise ValueError(
                    f"a dataset root must be an absolute path below /, without `..` or doubled /: {path!r}"
                )
        for one in allowed:
            if any(other.startswith(one + "/") for other in allowed):
                raise ValueError(f"a dataset root must not lie inside another: below {one!r}")
        self._allowed = tuple(allowed)
        self._rootfs = rootfs
        self._proc = proc

    @contextlib.contextmanager
    def open(self, path: str) -> Iterator[DatasetRoot]:
        """Given one of the allow-listed paths, give it open. Raise RefusedError for others, and at a link."""
        if path not in self._allowed:
            raise DatasetRefusedError(RefusalReason.NOT_A_ROOT, f"{path!r} is not among the dataset roots")
        seen = below(self._rootfs, os.fsencode(path))
        descriptor = _open_from_top(seen)
        try:
            yield self._describe(path, seen, descriptor)
        finally:
            os.close(descriptor)

    def _describe(self, path: str, seen: bytes, descriptor: int) -> DatasetRoot:
        ident = mount_id(self._proc, descriptor)
        mount = find_mount(read_mountinfo(f"{self._proc}/self/mountinfo"), ident)
        if mount is None:
            raise DatasetRefusedError(RefusalReason.OTHER_MOUNT, f"{path!r} is on a mount that was just taken away")
        point = mount.mount.point.rstrip(b"/")
        if seen != point and not seen.startswith(point + b"/"):
            raise DatasetRefusedError(RefusalReason.OTHER_MOUNT, f"{path!r} was mounted over while it was opened")
        usable = None if mount.mount.is_network else True
        device = os.fstat(descriptor).st_dev
        places = [*mount.places(seen.removeprefix(point))]
        # Some filesystems (btrfs) call a file's device by another number than mountinfo does.
        places.append(FsLocation(b"%d:%d" % (os.major(device), os.minor(device)), places[0].path))
        return DatasetRoot(
            path=path,
            descriptor=descriptor,
            device=device,
            mount=ident,
            places=tuple(dict.fromkeys(places)),
            atime_usable=False if mount.options & _NO_ATIME else usable,
            read_only=mount.mount.read_only,
            proc=self._proc,
        )


def _open_from_top(path: bytes) -> int:
    """Given an absolute path, open it one name after the other. Raise RefusedError at a symbolic link."""
    descriptor = os.open("/", OPEN_DIRECTORY_FLAGS)
    for name in path.strip(b"/").split(b"/"):
        try:
            inner = os.open(name, OPEN_DIRECTORY_FLAGS, dir_fd=descriptor)
        except OSError as error:
            raise _refusal(error, path, name) from error
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _refusal(error: OSError, path: bytes, name: bytes) -> DatasetRefusedError:
    where = f"{path_text(name)!r} in {path_text(path)!r}"
    # O_DIRECTORY with O_NOFOLLOW on a link: the kernel says "not a directory".
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return DatasetRefusedError(RefusalReason.SYMLINK, f"{where} is a symbolic link or not a directory")
    if error.errno == errno.ENOENT:
        return DatasetRefusedError(RefusalReason.GONE, f"{where} does not exist")
    return DatasetRefusedError(RefusalReason.FAILED, f"{where}: {error.strerror}")
