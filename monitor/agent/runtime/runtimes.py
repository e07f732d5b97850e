"""Which runtimes a node has, found by their sockets: at every question, because runtimes come, go and restart."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import NamedTuple

from monitor.agent.runtime.api import Runtime
from monitor.base.clock import Clock

# Device, inode and change time of a socket: a runtime that starts makes a new one.
_Identity = tuple[int, int, int]


class _Found(NamedTuple):
    identity: _Identity
    runtime: Runtime
    served: bool = True


class Runtimes:
    """The runtimes of a node. Shared by collectors on several threads.

    Entries are replaced as a whole and nothing is locked: the worst that two threads can do to each other is to make
    the same runtime twice, and then one of the two is used.
    """

    def __init__(self, docker_socket: str, cri_sockets: tuple[str, ...], clock: Clock = time) -> None:
        self._makers: dict[str, Callable[[str, Clock], Runtime]] = dict.fromkeys(cri_sockets, _cri)
        self._makers[docker_socket] = _docker
        self._clock = clock
        self._found: dict[str, _Found] = {}
        self._roots: dict[str, str] = {}

    def present(self) -> tuple[Runtime, ...]:
        """Return the runtimes whose sockets exist now, without those that were dismissed."""
        present: dict[tuple[int, int], Runtime] = {}  # one socket may have two paths: /run and /var/run
        for path, make in self._makers.items():
            identity = _identity(path)
            if identity is None:
                self._found.pop(path, None)
                continue
            found = self._found.get(path)
            if found is None or found.identity != identity:
                found = self._found[path] = _Found(identity, make(path, self._clock))
            if found.served:
                present.setdefault(identity[:2], found.runtime)
        return tuple(present.values())

    def dismiss(self, runtime: Runtime) -> None:
        """Leave `runtime` out until its socket is made anew: it does not speak what is expected of it."""
        found = self._found.get(runtime.socket)
        if found is not None and found.runtime is runtime:
            self._found[runtime.socket] = found._replace(served=False)

    def roots(self) -> tuple[str, ...]:
        """Return the runtimes' directories as far as they are known, also while a runtime is down."""
        for path, found in tuple(self._found.items()):
            if found.runtime.root is not None:
                self._roots[path] = found.runtime.root
        return tuple(sorted(set(self._roots.values())))


def _identity(path: str) -> _Identity | None:
    """Given a path, return which socket is there, or None if there is none."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return (0, hash(path), 0)  # there, and closed to us: whoever asks it gets told so
    return (status.st_dev, status.st_ino, status.st_ctime_ns) if stat.S_ISSOCK(status.st_mode) else None


def _docker(socket: str, clock: Clock) -> Runtime:
    from monitor.agent.runtime.docker import DockerRuntime  # where there is no Docker, http.client is not paid for

    return DockerRuntime(socket, clock)


def _cri(socket: str, clock: Clock) -> Runtime:
    from monitor.agent.runtime.cri import CriRuntime  # grpc costs 13 MiB

    return CriRuntime(socket, clock)
