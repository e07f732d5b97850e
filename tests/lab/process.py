"""Processes of the lab: detached, identified by pid and start time, signalled only if still the same process."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

# Every lab process has this variable, set to the lab's state directory, in its environment. Children inherit it, so the
# lab's processes can be identified even after a crash.
MARK = "GPUWARDEN_LAB_PROCESS_OF"


class Process(msgspec.Struct, frozen=True):
    """A process that cannot be confused with a later one of the same pid."""

    name: str
    pid: int
    start_ticks: int


def spawn(name: str, argv: Sequence[str], environment: dict[str, str], log: Path) -> Process:
    """Start a program in its own session with its output appended to `log`; OSError if that fails."""
    output = (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    pid = os.posix_spawn(
        argv[0],
        list(argv),
        environment,
        file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), output, (os.POSIX_SPAWN_DUP2, 1, 2)],
        setsid=True,
    )
    ticks = start_ticks(pid)
    return Process(name=name, pid=pid, start_ticks=ticks if ticks is not None else -1)


def this_process() -> Process:
    """The current process."""
    return Process(name="owner", pid=os.getpid(), start_ticks=start_ticks(os.getpid()) or -1)


def is_running(process: Process) -> bool:
    """Whether this exact process still runs; zombies do not count."""
    with suppress(ChildProcessError):  # not our child: its parent or init reaps it
        os.waitpid(process.pid, os.WNOHANG)
    return start_ticks(process.pid) == process.start_ticks


def send(process: Process, number: signal.Signals) -> None:
    """Signal this exact process; do nothing if it has ended."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        # A pidfd refers to one process, so the checked process is the signalled one.
        if start_ticks(process.pid) == process.start_ticks:
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def stop(processes: Iterable[Process], grace: float) -> list[Process]:
    """Terminate all processes, kill those still running after `grace` seconds, and return the survivors."""
    waiting = list(processes)
    for number, limit in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        for process in waiting:
            send(process, number)
        waiting = _still_running(waiting, limit)
    return waiting


def marked(root: Path) -> list[Process]:
    """Processes of the lab at `root`, including container processes, which descend from them."""
    wanted = f"{MARK}={root}".encode()
    ours = {pid for pid in _pids() if wanted in _environment(pid)}
    children: dict[int, list[int]] = {}
    for pid in _pids():
        if (parent := _parent(pid)) is not None:
            children.setdefault(parent, []).append(pid)
    queue = list(ours)
    while queue:
        new = set(children.get(queue.pop(), ())) - ours
        ours |= new
        queue.extend(new)
    return [Process(name=_name(pid), pid=pid, start_ticks=ticks) for pid in sorted(ours) if (ticks := start_ticks(pid))]


def _still_running(processes: list[Process], limit: float) -> list[Process]:
    deadline = time.monotonic() + limit
    while (running := [process for process in processes if is_running(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return running


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _environment(pid: int) -> list[bytes]:
    return _read(pid, "environ").split(b"\0")


def _name(pid: int) -> str:
    return _read(pid, "comm").decode(errors="replace").strip()


def start_ticks(pid: int) -> int | None:
    """Start time of a pid in clock ticks since boot; None if it has ended."""
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in (b"Z", b"X") else None


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _stat(pid: int) -> list[bytes]:
    """Fields after the name in /proc/<pid>/stat; empty if the process has ended."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
