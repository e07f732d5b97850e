"""Exclusive lock on a directory. The kernel releases it when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass

from monitor.base.private_files import make_private_directory, open_private

FILE = "daemon.lock"
WAIT_SECONDS = 1.0  # for a process that is about to end, or that only looks who holds the lock
POLL_SECONDS = 0.05
MAX_OWNER_BYTES = 300


@dataclass(frozen=True)
class LockOwner:
    """Process that holds the lock. `namespace` is its pid namespace: in another one, its pid is another process."""

    pid: int
    host: str
    namespace: str = ""

    @property
    def is_here(self) -> bool:
        """Whether this process may send signals to its pid."""
        return (self.host, self.namespace) == (socket.gethostname(), _pid_namespace())

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


class LockHeldError(Exception):
    """Another process holds the lock; `owner` is None if it has not written its name."""

    def __init__(self, owner: LockOwner | None) -> None:
        super().__init__(str(owner or "another process"))
        self.owner = owner


class DirectoryLock:
    """A lock that is held until release() or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None


def lock_directory(directory: str, wait: float = WAIT_SECONDS) -> DirectoryLock:
    """Take the lock of a directory, which is created if missing.

    Raise LockHeldError, or OSError if there can be no lock, as in a read-only directory.
    """
    make_private_directory(directory)
    descriptor = open_private(os.path.join(directory, FILE), os.O_RDWR | os.O_NOFOLLOW)
    deadline = time.monotonic() + wait
    try:
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            if time.monotonic() >= deadline:
                raise LockHeldError(_read_owner(descriptor))
            time.sleep(POLL_SECONDS)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {socket.gethostname()} {_pid_namespace()}\n".encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return DirectoryLock(descriptor)


def lock_owner(directory: str) -> LockOwner | None:
    """Process that holds the lock of a directory; None if none does. Raise OSError if the lock cannot be read."""
    try:
        descriptor = os.open(os.path.join(directory, FILE), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if _try_lock(descriptor, fcntl.LOCK_SH) else _read_owner(descriptor)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_owner(descriptor: int) -> LockOwner | None:
    with suppress(OSError, ValueError):
        pid, host, namespace = os.pread(descriptor, MAX_OWNER_BYTES, 0).decode("ascii", "replace").split()
        return LockOwner(int(pid), host, namespace)
    return None


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return "unknown"
