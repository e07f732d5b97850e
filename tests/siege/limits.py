"""Memory limits of a process: a control group where the machine permits one, otherwise a watchdog."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
MIB = 1 << 20
DESCRIPTORS = 1024


class MemoryLimit(Protocol):
    """A limit for one process."""

    @property
    def kind(self) -> str:
        """What enforces the limit."""
        ...

    def line(self, command: list[str]) -> list[str]:
        """Command line that runs a command under this limit, with DESCRIPTORS open files."""
        ...

    def exceeded(self, pid: int) -> bool:
        """Whether the process has exceeded the limit."""
        ...


@dataclass(frozen=True)
class CgroupLimit:
    """Enforced by the kernel, which kills the process that exceeds it."""

    kind: str
    folder: Path

    def line(self, command: list[str]) -> list[str]:
        return _shell(f'echo $$ > "{self.folder}/cgroup.procs" && ulimit -n {DESCRIPTORS} && exec "$@"', command)

    def exceeded(self, pid: int) -> bool:
        """Whether the kernel has killed a process of the group."""
        for name in ("memory.events", "memory.oom_control"):
            if (file := self.folder / name).exists():
                return any(line.split()[1] != "0" for line in file.read_text().splitlines() if "oom_kill " in line)
        return False


@dataclass(frozen=True)
class WatchedLimit:
    """Watched by the caller."""

    limit_bytes: int
    kind: str = "watchdog on PSS"

    def line(self, command: list[str]) -> list[str]:
        return _shell(f'ulimit -n {DESCRIPTORS} && exec "$@"', command)

    def exceeded(self, pid: int) -> bool:
        return memory_bytes(pid, "Pss") > self.limit_bytes


def _shell(script: str, command: list[str]) -> list[str]:
    """Run a script in a session of its own, which the scheduler weighs against others by its priority."""
    return ["setsid", "sh", "-c", script, "sh", *command]


def memory_bytes(pid: int, name: str = "Rss") -> int:
    """Memory of a process by a name in smaps_rollup; 0 if it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(text.partition(f"\n{name}:")[2].split()[0]) * 1024


@contextmanager
def memory_limit(name: str, limit_bytes: int, own: Path = OWN, root: Path = ROOT) -> Iterator[MemoryLimit]:
    """Limit of this many bytes. A control group is created below that of this process, and removed in the end."""
    for kind, parent, file in _groups(own.read_text(), root):
        folder = parent / f"gpuwarden-siege-{os.getpid()}-{name}"
        try:
            folder.mkdir()
            (folder / file).write_text(str(limit_bytes))
        except OSError:  # not permitted here, or the controller is not enabled
            _remove(folder)
            continue
        try:
            yield CgroupLimit(kind, folder)
        finally:
            _remove(folder)
        return
    yield WatchedLimit(limit_bytes)


def _groups(own: str, root: Path) -> Iterator[tuple[str, Path, str]]:
    """Kind, folder of the own group, and file of the limit, for each version of control groups."""
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield "cgroup v2 memory.max", root / path.lstrip("/"), "memory.max"
        elif "memory" in controllers.split(","):
            yield "cgroup v1 memory.limit_in_bytes", root / "memory" / path.lstrip("/"), "memory.limit_in_bytes"


def _remove(folder: Path) -> None:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:  # a plain directory, where no cgroup filesystem is mounted
            raise
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
