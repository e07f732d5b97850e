"""The directories in which state is kept."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.doctor.model import Verdict, Verdicts, ok, problem, warning

LITTLE = 1 << 30
TOO_LITTLE = 64 << 20
# File systems on which several machines may write at once, which the log of SQLite does not survive.
SHARED = ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "lustre", "fuse.juicefs", "fuse.glusterfs")


@dataclass(frozen=True)
class Damage:
    """A database that cannot be used, and why."""

    path: str
    why: str


@dataclass(frozen=True)
class StateFacts:
    """A directory. `exists` False: it is made at the first start, in the nearest one above, which `writable` is about.

    `no_log` says why SQLite cannot keep a write-ahead log there; None if it can, or if that could not be tried.
    """

    path: str
    exists: bool
    not_writable: str | None = None
    free: int | None = None
    free_inodes: int | None = None
    filesystem: str | None = None
    no_log: str | None = None
    databases: int = 0
    damaged: tuple[Damage, ...] = ()


def judge(facts: tuple[StateFacts, ...]) -> Verdicts:
    """Given the directories, return what would keep state from being kept."""
    return tuple(verdict for each in facts for verdict in _judge(each))


def _judge(facts: StateFacts) -> list[Verdict]:
    if facts.not_writable is not None:
        return [problem("state.not-writable", path=facts.path, why=facts.not_writable)]
    wrong = [problem("state.damaged", path=each.path, why=each.why) for each in facts.damaged]
    if facts.free is not None and facts.free < LITTLE:
        say = problem if facts.free < TOO_LITTLE else warning
        wrong.append(say("state.full", path=facts.path, free=facts.free))
    elif facts.free_inodes == 0:
        wrong.append(problem("state.no-inodes", path=facts.path))
    if facts.no_log is not None:
        wrong.append(problem("state.no-log", path=facts.path, why=facts.no_log))
    elif facts.filesystem in SHARED:
        wrong.append(warning("state.shared", path=facts.path, filesystem=facts.filesystem))
    if wrong:
        return wrong
    if not facts.exists:
        return [ok("state.not-yet", path=facts.path)]
    return [ok("state.ok", path=facts.path, count=facts.databases)]
