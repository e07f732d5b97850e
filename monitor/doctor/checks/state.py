"""The state directories of daemon and agent."""

from __future__ import annotations

import glob
import os
import tempfile
from dataclasses import dataclass, replace

from monitor.base.sqlite import DatabaseError, ask_file
from monitor.doctor.context import DoctorContext
from monitor.doctor.model import Check, CheckVerdict, Verdicts, ok, problem, warning

LOW_BYTES = 1 << 30
TOO_LOW_BYTES = 64 << 20
# Network file systems: SQLite's write-ahead log does not work if several machines write.
SHARED = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "lustre", "fuse.juicefs", "fuse.glusterfs")
_UNESCAPED = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


@dataclass(frozen=True)
class StateDirectory:
    """A state directory. If it does not exist, the first start creates it, and the facts are about its parent.

    `no_log` says why SQLite cannot use a write-ahead log there; None if it can, or if that could not be tested.
    `damaged` are the databases that cannot be used, and why.
    """

    path: str
    exists: bool
    not_writable: str | None = None
    free: int | None = None
    free_inodes: int | None = None
    filesystem: str | None = None
    no_log: str | None = None
    databases: int = 0
    damaged: tuple[tuple[str, str], ...] = ()


def judge(directories: tuple[StateDirectory, ...]) -> Verdicts:
    """Reasons why state cannot be stored."""
    return tuple(verdict for directory in directories for verdict in _judge(directory))


def _judge(facts: StateDirectory) -> list[CheckVerdict]:
    if facts.not_writable is not None:
        return [problem("state.not-writable", path=facts.path, why=facts.not_writable)]
    verdicts = [problem("state.damaged", path=path, why=why) for path, why in facts.damaged]
    if facts.free is not None and facts.free < LOW_BYTES:
        verdict = problem if facts.free < TOO_LOW_BYTES else warning
        verdicts.append(verdict("state.full", path=facts.path, free=facts.free))
    elif facts.free_inodes == 0:
        verdicts.append(problem("state.no-inodes", path=facts.path))
    if facts.no_log is not None:
        verdicts.append(problem("state.no-log", path=facts.path, why=facts.no_log))
    elif facts.filesystem in SHARED:
        verdicts.append(warning("state.shared", path=facts.path, filesystem=facts.filesystem))
    if verdicts:
        return verdicts
    if not facts.exists:
        return [ok("state.not-yet", path=facts.path)]
    return [ok("state.ok", path=facts.path, count=facts.databases)]


def read(context: DoctorContext) -> tuple[StateDirectory, ...]:
    """The state directories, which may be the same, without changing their contents."""
    config = context.config
    return tuple(_directory(path) for path in dict.fromkeys((config.daemon.state, config.agent.paths.state)))


def _directory(path: str) -> StateDirectory:
    exists, nearest = os.path.isdir(path), path
    while not os.path.isdir(nearest):
        nearest = os.path.dirname(nearest)
    space = os.statvfs(nearest)
    facts = StateDirectory(
        path=path,
        exists=exists,
        not_writable=_not_writable(nearest),
        free=space.f_bavail * space.f_frsize,
        free_inodes=space.f_favail if space.f_files else None,  # some file systems have no fixed number of inodes
        filesystem=_filesystem(nearest),
    )
    if not exists or facts.not_writable is not None:
        return facts
    databases = sorted(glob.glob(os.path.join(glob.escape(path), "*.db")))
    damaged = tuple(filter(None, map(_damage, databases)))
    return replace(facts, no_log=_no_log(path), databases=len(databases), damaged=damaged)


def _not_writable(path: str) -> str | None:
    try:
        with tempfile.TemporaryFile(dir=path):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _no_log(directory: str) -> str | None:
    """Why SQLite cannot use a write-ahead log in this directory; None if it can."""
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=directory) as scratch:
            file = os.path.join(scratch, "try.db")
            ((mode,),) = ask_file(file, "rwc", "PRAGMA journal_mode = WAL")
            ask_file(file, "rw", "CREATE TABLE tried (at)", "PRAGMA wal_checkpoint")
            return None if mode == "wal" else f"journal_mode is {mode}"
    except (DatabaseError, OSError) as error:
        return str(error)


def _damage(path: str) -> tuple[str, str] | None:
    try:
        ((outcome,),) = ask_file(path, "ro", "PRAGMA quick_check(1)")
    except DatabaseError as error:
        outcome = str(error)
    return None if outcome == "ok" else (path, str(outcome))


def _filesystem(path: str) -> str | None:
    """Type of the file system of a directory."""
    real = os.path.realpath(path)
    best: tuple[str, str | None] = ("", None)
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            for line in file:
                _, mount_point, kind, *_ = line.split(" ")
                for escaped, plain in _UNESCAPED.items():
                    mount_point = mount_point.replace(escaped, plain)
                below = real == mount_point or real.startswith(mount_point.rstrip("/") + "/")
                if below and len(mount_point) >= len(best[0]):
                    best = (mount_point, kind)
    except OSError:
        return None
    return best[1]


CHECKS = (Check("state.directories", read, judge),)
