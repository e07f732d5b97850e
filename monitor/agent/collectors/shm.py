"""Shared memory: size and use of /dev/shm, the host's and every container's."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from monitor.agent.guard import Guard, HungError
from monitor.agent.settings import Paths
from monitor.facts import ContainerFact, GpuProcessFact, ShmFact


class ShmCollector:
    """Looks at each /dev/shm through the root directory of a process that lives there."""

    name = "shm"

    def __init__(
        self,
        paths: Paths,
        containers: Callable[[], tuple[ContainerFact, ...] | None],
        gpu_processes: Callable[[], tuple[GpuProcessFact, ...] | None],
        limit: float = 2.0,
    ) -> None:
        self._rootfs = paths.rootfs.rstrip("/")
        self._proc = paths.proc
        self._containers = containers
        self._gpu_processes = gpu_processes
        self._limit = limit
        self._guard = Guard("shm")

    def collect(self) -> tuple[ShmFact, ...]:
        """Return the host's and, as far as they are known, every running container's."""
        places: list[tuple[str | None, int | None]] = [(None, None), *self._pids().items()]
        if not self._guard.hung():
            try:
                # All in one call, which is cheap, as shared memory does not hang, unless a container put a dead
                # network filesystem in its place.
                return self._guard.call("all", lambda: tuple(filter(None, map(self._read, places))), self._limit)
            except HungError:
                pass
        return tuple(filter(None, map(self._read_alone, places)))

    def _pids(self) -> dict[str, int]:
        """Return a process of each container. Those that hold a GPU count even if no runtime tells of them."""
        pids = {
            process.container_id: process.pid
            for process in self._gpu_processes() or ()
            if process.container_id is not None and process.state != "gone"
        }
        for container in self._containers() or ():
            if container.sandbox:
                pids.pop(container.id, None)
            elif container.pid and container.state in ("running", "paused"):
                pids[container.id] = container.pid
        return pids

    def _read_alone(self, place: tuple[str | None, int | None]) -> ShmFact | None:
        try:
            return self._guard.call(f"{place}", lambda: self._read(place), self._limit)
        except HungError:
            return None

    def _read(self, place: tuple[str | None, int | None]) -> ShmFact | None:
        """Given a container and a process of it, return its /dev/shm, or None when there is none to be seen."""
        container_id, pid = place
        root = f"{self._rootfs}/" if pid is None else f"{self._proc}/{pid}/root/"
        path = f"{root}dev/shm"
        try:
            status, space = os.lstat(path), os.statvfs(path)
            on_disk = status.st_dev == os.stat(root).st_dev
        except OSError:
            return None  # no such directory, the process has ended, or the agent may not look
        if on_disk or not stat.S_ISDIR(status.st_mode) or not space.f_blocks:
            return None  # the figures would be the disk's, or those of where a link leads; a size of 0 is "no limit"
        return ShmFact(
            size_bytes=space.f_blocks * space.f_frsize,
            used_bytes=(space.f_blocks - space.f_bfree) * space.f_frsize,
            device=status.st_dev,
            container_id=container_id,
            pid=pid,
        )
