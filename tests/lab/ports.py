"""Free ports on loopback."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

import msgspec

from tests.lab.errors import LabError

# Below the kernel's ephemeral port range: an outgoing connection could otherwise take a port between choosing it and
# listening on it.
FIRST, LAST = 20000, 32000


class Ports(msgspec.Struct, frozen=True):
    """One port per listener of the lab."""

    etcd: int
    etcd_peer: int
    apiserver: int
    scheduler: int
    controller_manager: int
    kubelet: int
    registry: int


def choose_ports() -> Ports:
    """Unused ports; LabError if there are none."""
    count = len(Ports.__struct_fields__)
    chosen: list[int] = []
    with ExitStack() as held:
        for port in random.sample(range(FIRST, LAST), 50 * count):
            listener = held.enter_context(socket.socket())
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            chosen.append(port)
            if len(chosen) == count:
                return Ports(*chosen)
    raise LabError(f"no free ports between {FIRST} and {LAST}")
