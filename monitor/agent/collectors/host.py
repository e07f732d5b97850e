"""The host itself: processors, memory, load."""

from __future__ import annotations

import os

import psutil

from monitor.agent.settings import Paths
from monitor.facts import HostFact


class HostCollector:
    """Reads the figures of the whole node, not of the agent's container."""

    name = "host"

    def __init__(self, paths: Paths) -> None:
        # psutil has one /proc for the whole process.
        psutil.PROCFS_PATH = paths.proc
        self._kernel = os.uname().release

    def collect(self) -> HostFact:
        """Figures of the host. Raise OSError if /proc cannot be read."""
        memory = psutil.virtual_memory()
        seconds = psutil.cpu_times()._asdict()
        for counted_twice in ("guest", "guest_nice"):  # already included in user and nice
            seconds.pop(counted_twice, None)
        return HostFact(
            cpus=psutil.cpu_count() or len(os.sched_getaffinity(0)),
            memory_total_bytes=memory.total,
            memory_available_bytes=memory.available,
            cpu_seconds_total=seconds,
            load1=os.getloadavg()[0],
            booted_at=psutil.boot_time(),
            kernel=self._kernel,
        )
