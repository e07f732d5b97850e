"""The directories in which state is kept, without changing anything that is in them."""

from __future__ import annotations

import glob
import os
import tempfile

from monitor.base.sqlite import DatabaseError, ask_file
from monitor.doctor.checks.state import Damage, StateFacts
from monitor.doctor.context import Visit

_UNESCAPED = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


def state(visit: Visit) -> tuple[StateFacts, ...]:
    """Look at the directories of daemon and agent, which may be one."""
    config = visit.config
    return tuple(_look(path) for path in dict.fromkeys((config.daemon.state, config.agent.paths.state)))


def _look(path: str) -> StateFacts:
    exists = os.path.isdir(path)
    there = path if exists else _nearest(path)
    room = os.statvfs(there)
    facts = StateFacts(
        path=path,
        exists=exists,
        not_writable=_not_writable(there),
        free=room.f_bavail * room.f_frsize,
        free_inodes=room.f_favail if room.f_files else None,  # some file systems do not count them
        filesystem=_filesystem(there),
    )
    if not exists or facts.not_writable is not None:
        return facts
    found = sorted(glob.glob(os.path.join(glob.escape(path), "*.db")))
    damaged = tuple(damage for each in found if (damage := _damage(each)) is not None)
    return StateFacts(
        path, exists, None, facts.free, facts.free_inodes, facts.filesystem, _no_log(path), len(found), damaged
    )


def _nearest(path: str) -> str:
    """Return the nearest directory above that exists: the others are made at the first start."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def _not_writable(path: str) -> str | None:
    try:
        with tempfile.TemporaryFile(dir=path):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _no_log(directory: str) -> str | None:
    """Return why SQLite cannot keep a write-ahead log in this directory; None if it can."""
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=directory) as scratch:
            file = os.path.join(scratch, "try.db")
            ((mode,),) = ask_file(file, "rwc", "PRAGMA journal_mode = WAL")
            ask_file(file, "rw", "CREATE TABLE tried (at)", "PRAGMA wal_checkpoint")
            return None if mode == "wal" else f"journal_mode is {mode}"
    except (DatabaseError, OSError) as error:
        return str(error)


def _damage(path: str) -> Damage | None:
    try:
        ((found,),) = ask_file(path, "ro", "PRAGMA quick_check(1)")
    except DatabaseError as error:
        found = str(error)
    return None if found == "ok" else Damage(path, str(found))


def _filesystem(path: str) -> str | None:
    """Return the type of the file system that a directory is on."""
    real = os.path.realpath(path)
    best: tuple[str, str | None] = ("", None)
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            for line in file:
                _, point, kind, *_ = line.split(" ")
                for escaped, plain in _UNESCAPED.items():
                    point = point.replace(escaped, plain)
                below = real == point or real.startswith(point.rstrip("/") + "/")
                if below and len(point) >= len(best[0]):
                    best = (point, kind)
    except OSError:
        return None
    return best[1]
