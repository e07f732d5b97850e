"""An exclusive file lock that is released when its process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.errors import wait_for


@contextmanager
def locked(path: Path, limit: float) -> Iterator[None]:
    """Hold the lock at `path`; LabError if another process keeps it for longer than `limit` seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        wait_for(lambda: _try(handle), limit, f"another process to let go of {path}")
        yield
    finally:
        os.close(handle)


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
