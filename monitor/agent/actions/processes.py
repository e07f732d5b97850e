"""Ending a process that holds a card and belongs to nobody: TERM, then KILL, and only ever that one process.

The process is held by a file descriptor before it is looked at, so that a pid which is given to another one meanwhile
cannot be hit.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from monitor.agent.actions.outcome import ActionOutcome, ActionRefusal, done, failed, refused
from monitor.agent.cgroup import read_owner
from monitor.agent.procfs import read_process
from monitor.agent.runtime import EngineError, NotServedError, Runtimes
from monitor.facts import ContainerFact, GpuProcessFact
from monitor.facts.actions import KillProcess

TICK_SECONDS = 1.0 / os.sysconf("SC_CLK_TCK")
KILL_WAIT_SECONDS = 10.0  # seconds; what is still there then hangs in the kernel
_ALIVE = frozenset({"running", "paused", "created", "unknown"})


class ProcessActions:
    """Ends processes. `on_cards` reads anew who is on which card, and raises what reading raises."""

    def __init__(
        self,
        proc: str,
        runtimes: Runtimes,
        on_cards: Callable[[], tuple[GpuProcessFact, ...]],
        after_kill: float = KILL_WAIT_SECONDS,
    ) -> None:
        self._proc = proc
        self._runtimes = runtimes
        self._on_cards = on_cards
        self._after_kill = after_kill

    def kill(self, action: KillProcess) -> ActionOutcome:
        """End a process, if it is the one that was meant and still belongs to nobody."""
        if not self._sees_our_pids():
            return refused("unknown", "the agent sees other pids than the kernel counts here: run it with hostPID")
        try:
            handle = os.pidfd_open(action.pid)
        except ProcessLookupError:
            return refused("gone", f"there is no process {action.pid}")
        try:
            against = self._refusal(action)
            return against.outcome() if against else self._end(handle, action)
        except (OSError, EngineError) as error:
            return failed("failed", str(error))
        finally:
            os.close(handle)

    def _sees_our_pids(self) -> bool:
        """Return whether /proc, which may be another container's or the host's, counts as this process does."""
        try:
            return os.readlink(f"{self._proc}/self") == str(os.getpid())
        except OSError:
            return False

    def _refusal(self, action: KillProcess) -> ActionRefusal | None:
        stat = read_process(self._proc, action.pid)
        if stat is None:
            return ActionRefusal("gone", f"there is no process {action.pid}")
        if abs(stat.started_at - action.started_at) > 1.5 * TICK_SECONDS:
            return ActionRefusal("changed", f"{action.pid} is another process: it began at {stat.started_at:.2f}")
        cards = {fact.gpu_uuid for fact in self._on_cards() if fact.pid == action.pid}
        if action.gpu not in cards:
            return ActionRefusal("changed", f"{action.pid} ({stat.name}) is not on {action.gpu} any more")
        return self._owned(action.pid)

    def _owned(self, pid: int) -> ActionRefusal | None:
        """Return of which living container or pod a process is. That it cannot be told is a reason too."""
        owner = read_owner(self._proc, pid)
        if owner is None:
            return ActionRefusal("unknown", f"it cannot be read to whom {pid} belongs")
        if owner.container_id is None and owner.pod_uid is None:
            return None
        for container in self._containers():
            if container.state in _ALIVE and (container.id == owner.container_id or _is_of(container, owner.pod_uid)):
                return ActionRefusal("in-use", f"{pid} belongs to container {container.name or container.id}")
        return None

    def _containers(self) -> list[ContainerFact]:
        found: list[ContainerFact] = []
        for runtime in self._runtimes.present():
            try:
                found += runtime.containers()
            except NotServedError:
                continue
        return found

    def _end(self, handle: int, action: KillProcess) -> ActionOutcome:
        for number, patience in ((signal.SIGTERM, action.grace_seconds), (signal.SIGKILL, self._after_kill)):
            try:
                signal.pidfd_send_signal(handle, number)
            except ProcessLookupError:
                return done("killed")
            if _ended(handle, patience):
                return done("killed", f"by {number.name}")
        return failed("stuck", f"{action.pid} does not end by KILL: it hangs in the kernel, most likely in the driver")


def _is_of(container: ContainerFact, pod_uid: str | None) -> bool:
    return pod_uid is not None and container.pod_uid == pod_uid


def _ended(handle: int, seconds: float) -> bool:
    """Wait for a process to end, and return whether it did."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if poll.poll(left * 1000):
            return True
    return bool(poll.poll(0))
