"""Processes on GPUs: the driver's list, joined with /proc and cgroups."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from monitor.agent.cgroup import ContainerOwner, read_owner
from monitor.agent.collectors import AbsentError
from monitor.agent.gpu import DriverMissingError, GpuDriverError, GpuLostError, GpuProcess, GpuSession, new_session
from monitor.agent.procfs import ProcessStat, read_process
from monitor.base.clock import Clock
from monitor.facts import GpuProcessFact

GONE = "gone"


@dataclass(slots=True)
class GpuProcessState:
    """What is known about one process, identified by pid and start time."""

    stat: ProcessStat | None
    owner: ContainerOwner | None
    state: str
    state_since: float


class GpuProcessesCollector:
    """Reads which processes hold which GPU.

    A process is remembered while the driver lists it: since when it is in its state, and its owner, which cannot be
    determined once the process is dead or gone.
    """

    name = "gpu_processes"

    def __init__(self, proc: str, clock: Clock = time, session: GpuSession | None = None) -> None:
        self._proc = proc
        self._clock = clock
        self._session = session or new_session(clock)
        self._states: dict[int, GpuProcessState] = {}
        self.warning: str | None = None

    def collect(self) -> tuple[GpuProcessFact, ...]:
        """Processes on all GPUs. Raise AbsentError without a driver, GpuDriverError if no GPU lists its processes."""
        try:
            listed = self._list_processes()
        except DriverMissingError as missing:
            raise AbsentError(str(missing)) from missing
        now = self._clock.time()
        self._states = {pid: self._read_state(pid, now) for pid in {process.pid for _, process in listed}}
        return tuple(self._fact(uuid, process) for uuid, process in listed)

    def _list_processes(self) -> list[tuple[str, GpuProcess]]:
        """Processes with the UUID of their GPU. A lost GPU has lost its list; the others still have theirs."""
        listed: list[tuple[str, GpuProcess]] = []
        any_list, without_list = False, []
        with self._session.reading():
            for gpu in self._session.gpus:
                with suppress(GpuLostError):
                    processes, uuid = gpu.processes(), gpu.identity.uuid
                    if processes is None or uuid is None:
                        without_list.append(str(gpu.identity.index))
                        continue
                    any_list = True
                    listed += [(uuid, process) for process in processes]
            if not any_list and (self._session.gpus or self._session.unreadable):
                raise GpuDriverError("no GPU lists its processes")
        self.warning = f"no process list from GPU {', '.join(without_list)}" if without_list else None
        return listed

    def _read_state(self, pid: int, now: float) -> GpuProcessState:
        before = self._states.get(pid)
        stat = read_process(self._proc, pid)
        if stat is None:
            return gone_state(before, now)
        if before is None or before.stat is None or before.stat.started_at != stat.started_at:
            return GpuProcessState(stat, read_owner(self._proc, pid), stat.state, now)
        since = before.state_since if before.state == stat.state else now
        # The owner of a process never changes: only one that could not be read is read again.
        return GpuProcessState(stat, before.owner or read_owner(self._proc, pid), stat.state, since)

    def _fact(self, gpu_uuid: str, process: GpuProcess) -> GpuProcessFact:
        known = self._states[process.pid]
        stat, owner = known.stat, known.owner
        return GpuProcessFact(
            gpu_uuid=gpu_uuid,
            pid=process.pid,
            kind=process.kind,
            mig_uuid=process.mig_uuid,
            memory_bytes=process.memory_bytes,
            name=stat.name if stat else None,
            state=known.state,
            state_since=known.state_since,
            started_at=stat.started_at if stat else None,
            uid=stat.uid if stat else None,
            container_id=owner.container_id if owner else None,
            pod_uid=owner.pod_uid if owner else None,
        )


def gone_state(before: GpuProcessState | None, now: float) -> GpuProcessState:
    """State of a process that /proc no longer has: what was known about it still holds."""
    if before is None:
        return GpuProcessState(None, None, GONE, now)
    return GpuProcessState(before.stat, before.owner, GONE, before.state_since if before.state == GONE else now)
