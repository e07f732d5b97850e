"""Size of the state directory, and how its databases give space back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Protocol

from monitor.base.private_files import ASIDE
from monitor.base.sqlite import Database

# The chart's volume has 2 GiB. A year of a thousand nodes takes 0.9 GiB, which leaves room for one copy of a file.
MAX_STATE_BYTES = 1536 << 20
VACUUM_ROOM_FACTOR = 2  # VACUUM writes a copy of the file, and the WAL another


class ShrinkableStore(Protocol):
    """A store that can do without its oldest records."""

    def shrink(self) -> bool:
        """Delete the older half of the least valuable records. Return whether there were any. Raise DatabaseError."""
        ...


def directory_bytes(path: str, aside: bool = True) -> int:
    """Bytes of all files in a directory and below, without links, and without copies set aside unless `aside`."""
    total = 0
    for directory, _, names in os.walk(path):
        for name in names:
            if not aside and ASIDE.match(name):
                continue
            try:
                total += os.lstat(os.path.join(directory, name)).st_size
            except OSError:  # it has vanished
                continue
    return total


def shrink_to(limit: int, measure: Callable[[], int], stores: Iterable[ShrinkableStore]) -> int:
    """Shrink stores, the least valuable first, until the size is within the limit; return the size then."""
    size = measure()
    for store in stores:
        while size > limit and store.shrink():
            size = measure()
    return size


def compact(database: Database, path: str) -> None:
    """Return deleted pages to the disk, if it has room for the copy that this takes. Raise DatabaseError."""
    room = os.statvfs(os.path.dirname(path) or ".")
    if room.f_bavail * room.f_frsize > VACUUM_ROOM_FACTOR * file_bytes(path):
        database.select("VACUUM")
        database.select("PRAGMA wal_checkpoint(TRUNCATE)")


def file_bytes(path: str) -> int:
    """Bytes of a database file; 0 if there is none."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
