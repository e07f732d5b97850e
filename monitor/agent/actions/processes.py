"""Kills a process that holds a GPU and belongs to no container: SIGTERM, then SIGKILL, to that one process only.

The process is opened as a pidfd before it is checked, so that a pid that is reused in the meantime cannot be hit.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable

from monitor.agent.actions.outcome import ActionOutcome, ActionRefusal, done, failed, refused
from monitor.agent.actions.process_owner import owner_refusal
from monitor.agent.cgroup import read_owner
from monitor.agent.procfs import read_process
from monitor.agent.runtime import EngineError, NotServedError, Runtimes
from monitor.facts import ContainerFact, GpuProcessFact
from monitor.facts.actions import KillProcess

TICK_SECONDS = 1.0 / os.sysconf("SC_CLK_TCK")
KILL_WAIT_SECONDS = 10.0  # a process that survives SIGKILL for so long hangs in the kernel


class ProcessActions:
    """Kills processes. `gpu_processes` reads the current processes of all GPUs, and may raise.

    A process has at least `min_grace` seconds to end by itself, whatever the request says.
    """

    def __init__(
        self,
        proc: str,
        runtimes: Runtimes,
        gpu_processes: Callable[[], tuple[GpuProcessFact, ...]],
        min_grace: float,
        kill_wait: float = KILL_WAIT_SECONDS,
    ) -> None:
        self._proc = proc
        self._runtimes = runtimes
        self._gpu_processes = gpu_processes
        self._min_grace = min_grace
        self._kill_wait = kill_wait

    def kill(self, action: KillProcess) -> ActionOutcome:
        """Kill the process if it is the planned one and still belongs to no container."""
        if not self._shares_pid_namespace():
            return refused("unknown", "/proc belongs to another pid namespace: run the agent with hostPID")
        try:
            pidfd = os.pidfd_open(action.pid)
        except ProcessLookupError:
            return refused("gone", f"there is no process {action.pid}")
        try:
            refusal = self._refusal(action)
            return refusal.outcome() if refusal else self._end(pidfd, action)
        except (OSError, EngineError) as error:
            return failed("failed", str(error))
        finally:
            os.close(pidfd)

    def _shares_pid_namespace(self) -> bool:
        """Whether /proc, which may be the host's, shows this process under its own pid."""
        try:
            return os.readlink(f"{self._proc}/self") == str(os.getpid())
        except OSError:
            return False

    def _refusal(self, action: KillProcess) -> ActionRefusal | None:
        stat = read_process(self._proc, action.pid)
        if stat is None:
            return ActionRefusal("gone", f"there is no process {action.pid}")
        if abs(stat.started_at - action.started_at) > 1.5 * TICK_SECONDS:
            return ActionRefusal("changed", f"{action.pid} is another process, started at {stat.started_at:.2f}")
        gpus = {fact.gpu_uuid for fact in self._gpu_processes() if fact.pid == action.pid}
        if action.gpu not in gpus:
            return ActionRefusal("changed", f"{action.pid} ({stat.name}) no longer uses {action.gpu}")
        return self._owned(action.pid)

    def _owned(self, pid: int) -> ActionRefusal | None:
        """Refusal if the process belongs to a live container or pod, or if its owner is unknown."""
        owner = read_owner(self._proc, pid)
        if owner is None:
            return ActionRefusal("unknown", f"the cgroup of {pid} cannot be read")
        if owner.container_id is None and owner.pod_uid is None:
            return None
        return owner_refusal(pid, owner, self._containers())

    def _containers(self) -> list[ContainerFact]:
        """Containers of all runtimes that answer. Raise EngineError if one cannot be read."""
        containers: list[ContainerFact] = []
        for runtime in self._runtimes.present():
            try:
                containers += runtime.containers()
            except NotServedError:
                continue
        return containers

    def _end(self, pidfd: int, action: KillProcess) -> ActionOutcome:
        grace = max(action.grace_seconds, self._min_grace)
        for number, timeout in ((signal.SIGTERM, grace), (signal.SIGKILL, self._kill_wait)):
            try:
                signal.pidfd_send_signal(pidfd, number)
            except ProcessLookupError:
                return done("killed")
            if _has_ended(pidfd, timeout):
                return done("killed", f"by {number.name}")
        return failed("stuck", f"{action.pid} survives SIGKILL: it hangs in the kernel, most likely in the driver")


def _has_ended(pidfd: int, timeout: float) -> bool:
    """Whether the process ends within `timeout` seconds."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    deadline = time.monotonic() + timeout
    while (left := deadline - time.monotonic()) > 0:
        if poll.poll(left * 1000):
            return True
    return bool(poll.poll(0))
