"""Free ports on loopback."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

import msgspec

from tests.lab.errors import LabError

# Below the range out of which the kernel takes the ports of outgoing connections: one of those could otherwise sit on
# a port between our choosing it and a component's listening on it.
FIRST, LAST = 20000, 32000


class Ports(msgspec.Struct, frozen=True):
    """One port for each listener of the lab."""

    etcd: int
    etcd_peer: int
    apiserver: int
    scheduler: int
    controller_manager: int
    kubelet: int
    registry: int


def choose_ports() -> Ports:
    """Return ports on which nothing listens. Raise LabError if there are none."""
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
