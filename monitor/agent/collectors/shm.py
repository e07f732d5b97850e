"""Shared memory: size and usage of /dev/shm, of the host and of every container."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from monitor.agent.guard import HungCallGuard, HungError
from monitor.agent.settings import Paths
from monitor.facts import ContainerFact, GpuProcessFact, ShmFact

_Target = tuple[str | None, int | None]  # container and one of its processes; both None for the host


class ShmCollector:
    """Reads each /dev/shm through the root directory of a process of the container."""

    name = "shm"

    def __init__(
        self,
        paths: Paths,
        containers: Callable[[], tuple[ContainerFact, ...] | None],
        gpu_processes: Callable[[], tuple[GpuProcessFact, ...] | None],
        timeout: float = 2.0,
    ) -> None:
        self._rootfs = paths.rootfs.rstrip("/")
        self._proc = paths.proc
        self._containers = containers
        self._gpu_processes = gpu_processes
        self._timeout = timeout
        self._guard = HungCallGuard("shm")

    def collect(self) -> tuple[ShmFact, ...]:
        """Shared memory of the host and of every known running container."""
        targets: list[_Target] = [(None, None), *self._pids().items()]
        if not self._guard.hung():
            try:
                # All in one cheap call: shared memory does not hang, unless a container has mounted a dead network
                # filesystem in its place.
                return self._guard.call("all", lambda: tuple(filter(None, map(self._read, targets))), self._timeout)
            except HungError:
                pass
        return tuple(filter(None, map(self._read_alone, targets)))

    def _pids(self) -> dict[str, int]:
        """One process of each container. Processes on a GPU count even if no runtime lists their container."""
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

    def _read_alone(self, target: _Target) -> ShmFact | None:
        try:
            return self._guard.call(f"{target}", lambda: self._read(target), self._timeout)
        except HungError:
            return None

    def _read(self, target: _Target) -> ShmFact | None:
        container_id, pid = target
        root = f"{self._rootfs}/" if pid is None else f"{self._proc}/{pid}/root/"
        path = f"{root}dev/shm"
        try:
            status, space = os.lstat(path), os.statvfs(path)
            on_disk = status.st_dev == os.stat(root).st_dev
        except OSError:
            return None  # no such directory, the process has ended, or permission denied
        if on_disk or not stat.S_ISDIR(status.st_mode) or not space.f_blocks:
            return None  # the figures of a disk or of a link's target; a size of 0 means "no limit"
        return ShmFact(
            size_bytes=space.f_blocks * space.f_frsize,
            used_bytes=(space.f_blocks - space.f_bfree) * space.f_frsize,
            device=status.st_dev,
            container_id=container_id,
            pid=pid,
        )
