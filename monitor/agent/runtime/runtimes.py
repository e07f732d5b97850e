"""Runtimes of a node, discovered by their sockets on every query, because runtimes start, stop and restart."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import NamedTuple

from monitor.agent.runtime.api import Runtime
from monitor.base.clock import Clock

# Device, inode and change time of a socket: a runtime that starts creates a new one.
_SocketId = tuple[int, int, int]


class _RuntimeEntry(NamedTuple):
    socket_id: _SocketId
    runtime: Runtime
    served: bool = True


class Runtimes:
    """The runtimes of a node, shared by the threads of several collectors.

    Entries are replaced as a whole without a lock: at worst two threads create the same runtime, and one of the two is
    used.
    """

    def __init__(self, docker_socket: str, cri_sockets: tuple[str, ...], clock: Clock = time) -> None:
        self._factories: dict[str, Callable[[str, Clock], Runtime]] = dict.fromkeys(cri_sockets, _cri)
        self._factories[docker_socket] = _docker
        self._clock = clock
        self._entries: dict[str, _RuntimeEntry] = {}
        self._roots: dict[str, str] = {}

    def present(self) -> tuple[Runtime, ...]:
        """Runtimes whose sockets exist, without dismissed ones."""
        present: dict[tuple[int, int], Runtime] = {}  # one socket may have two paths: /run and /var/run
        for path, create in self._factories.items():
            socket_id = _socket_id(path)
            if socket_id is None:
                self._entries.pop(path, None)
                continue
            entry = self._entries.get(path)
            if entry is None or entry.socket_id != socket_id:
                entry = self._entries[path] = _RuntimeEntry(socket_id, create(path, self._clock))
            if entry.served:
                present.setdefault(socket_id[:2], entry.runtime)
        return tuple(present.values())

    def dismiss(self, runtime: Runtime) -> None:
        """Ignore `runtime`, which does not speak the expected protocol, until its socket is recreated."""
        entry = self._entries.get(runtime.socket)
        if entry is not None and entry.runtime is runtime:
            self._entries[runtime.socket] = entry._replace(served=False)

    def roots(self) -> tuple[str, ...]:
        """Known root directories, including those of runtimes that are down."""
        for path, entry in tuple(self._entries.items()):
            if entry.runtime.root is not None:
                self._roots[path] = entry.runtime.root
        return tuple(sorted(set(self._roots.values())))


def _socket_id(path: str) -> _SocketId | None:
    """Identity of the socket at a path; None if there is none."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return (0, hash(path), 0)  # it exists but denies access, which a query reports
    return (status.st_dev, status.st_ino, status.st_ctime_ns) if stat.S_ISSOCK(status.st_mode) else None


def _docker(socket: str, clock: Clock) -> Runtime:
    from monitor.agent.runtime.docker import DockerRuntime  # http.client costs memory that nodes without Docker save

    return DockerRuntime(socket, clock)


def _cri(socket: str, clock: Clock) -> Runtime:
    from monitor.agent.runtime.cri import CriRuntime  # h2 and protobuf cost 4 MiB

    return CriRuntime(socket, clock)
