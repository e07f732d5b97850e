"""Processes that hold cards: the driver's list, joined with what /proc and the cgroups say of each."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from monitor.agent.cgroup import Owner, read_owner
from monitor.agent.collectors import AbsentError
from monitor.agent.gpu import nvml
from monitor.agent.procfs import ProcessStat, read_process
from monitor.base.clock import Clock
from monitor.facts import GpuProcessFact

GONE = "gone"


@dataclass(slots=True)
class Seen:
    """What is known of one process, which is a pid and when it was started."""

    stat: ProcessStat | None
    owner: Owner | None
    state: str
    state_since: float


class GpuProcessesCollector:
    """Reads who holds which card.

    Processes are remembered while they are listed: since when they are in their state, and whose they are, which of
    one that is dead or gone can no longer be found out.
    """

    name = "gpu_processes"

    def __init__(self, proc: str, clock: Clock = time) -> None:
        self._proc = proc
        self._clock = clock
        self._session = nvml.Session(clock)
        self._seen: dict[int, Seen] = {}
        self.trouble: str | None = None  # which cards the last reading is without

    def collect(self) -> tuple[GpuProcessFact, ...]:
        """Return the processes. Raise AbsentError without a driver, NvmlError when no card tells its processes."""
        try:
            held = self._read_cards()
        except nvml.DriverMissingError as missing:
            raise AbsentError(str(missing)) from missing
        now = self._clock.time()
        self._seen = {pid: self._look_at(pid, now) for pid in {process.pid for _, process in held}}
        return tuple(self._fact(uuid, process) for uuid, process in held)

    def _read_cards(self) -> list[tuple[str, nvml.CardProcess]]:
        """Return the processes of each card. A card that is lost has lost its list too; the others have theirs."""
        held: list[tuple[str, nvml.CardProcess]] = []
        told, mute = False, []
        with self._session.reading():
            for card in self._session.cards:
                with suppress(nvml.CardLostError):
                    processes = nvml.read_processes(card)
                    if processes is None or card.uuid is None:
                        mute.append(str(card.index))
                        continue
                    told = True
                    held += [(card.uuid, process) for process in processes]
            if not told and (self._session.cards or self._session.unreadable):
                raise nvml.NvmlError("no card tells which processes it has")
        self.trouble = f"not told by cards {', '.join(mute)}" if mute else None
        return held

    def _look_at(self, pid: int, now: float) -> Seen:
        before = self._seen.get(pid)
        stat = read_process(self._proc, pid)
        if stat is None:
            return gone(before, now)
        if before is None or before.stat is None or before.stat.started_at != stat.started_at:
            return Seen(stat, read_owner(self._proc, pid), stat.state, now)
        since = before.state_since if before.state == stat.state else now
        # The owner of a process never changes; only what could not be read yet is tried again.
        return Seen(stat, before.owner or read_owner(self._proc, pid), stat.state, since)

    def _fact(self, gpu_uuid: str, process: nvml.CardProcess) -> GpuProcessFact:
        seen = self._seen[process.pid]
        stat, owner = seen.stat, seen.owner
        return GpuProcessFact(
            gpu_uuid=gpu_uuid,
            pid=process.pid,
            kind=process.kind,
            mig_uuid=process.mig_uuid,
            memory_bytes=process.memory_bytes,
            name=stat.name if stat else None,
            state=seen.state,
            state_since=seen.state_since,
            started_at=stat.started_at if stat else None,
            uid=stat.uid if stat else None,
            container_id=owner.container_id if owner else None,
            pod_uid=owner.pod_uid if owner else None,
        )


def gone(before: Seen | None, now: float) -> Seen:
    """Given what was known of a process that /proc no longer has, return it as gone, keeping what is still true."""
    if before is None:
        return Seen(None, None, GONE, now)
    return Seen(before.stat, before.owner, GONE, before.state_since if before.state == GONE else now)
