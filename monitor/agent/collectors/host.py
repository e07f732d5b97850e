"""The host itself: processors, memory, load, network."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import psutil

from monitor.agent.settings import Paths
from monitor.facts import HostFact

# Names that the kernel and udev give to Ethernet and InfiniBand devices; bridges and virtual ones count nothing else.
_PHYSICAL = re.compile(r"(?:en|eth|em|ib|mlx)\w*|p\d+p\d+\w*")
_FIELDS_COUNT = 9  # up to the sent bytes


class NetworkBytes(NamedTuple):
    """Bytes since boot; None if no physical interface is known."""

    received: int | None = None
    transmitted: int | None = None


class HostCollector:
    """Reads the figures of the whole node, not of the agent's container."""

    name = "host"

    def __init__(self, paths: Paths) -> None:
        # psutil has one /proc for the whole process.
        psutil.PROCFS_PATH = paths.proc
        self._network = f"{paths.proc}/1/net/dev"  # of the host: the agent may have a network of its own
        self._kernel = os.uname().release

    def collect(self) -> HostFact:
        """Figures of the host. Raise OSError if /proc cannot be read."""
        memory = psutil.virtual_memory()
        seconds = psutil.cpu_times()._asdict()
        for counted_twice in ("guest", "guest_nice"):  # already included in user and nice
            seconds.pop(counted_twice, None)
        network = self._network_bytes()
        return HostFact(
            cpus=psutil.cpu_count() or len(os.sched_getaffinity(0)),
            memory_total_bytes=memory.total,
            memory_available_bytes=memory.available,
            cpu_seconds_total=seconds,
            load1=os.getloadavg()[0],
            booted_at=psutil.boot_time(),
            kernel=self._kernel,
            network_received_bytes_total=network.received,
            network_transmitted_bytes_total=network.transmitted,
        )

    def _network_bytes(self) -> NetworkBytes:
        try:
            with open(self._network, encoding="ascii", errors="replace") as file:
                return parse_network(file.read())
        except OSError:
            return NetworkBytes()


def parse_network(text: str) -> NetworkBytes:
    """Sums over the physical interfaces of /proc/<pid>/net/dev."""
    received = transmitted = None
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        fields = rest.split()
        if _PHYSICAL.fullmatch(name.strip()) and len(fields) >= _FIELDS_COUNT and fields[0].isdecimal():
            received = (received or 0) + int(fields[0])
            transmitted = (transmitted or 0) + int(fields[_FIELDS_COUNT - 1])
    return NetworkBytes(received, transmitted)
