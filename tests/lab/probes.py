"""Readiness checks of components."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

from tests.lab.components import LOOPBACK
from tests.lab.layout import KUBELET_SOCKET, Layout
from tests.lab.registration import is_registered
from tests.lab.state import State

ANSWER_LIMIT = 3.0


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_LIMIT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(ANSWER_LIMIT)
        self.sock.connect(str(self._path))


def answers(connection: http.client.HTTPConnection, path: str, token: str | None = None) -> bool:
    """Whether a GET of `path` returns 200."""
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def readiness(layout: Layout, state: State) -> dict[str, Callable[[], bool]]:
    """Readiness check of each component."""
    ports = state.ports

    def plain(port: int) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(LOOPBACK, port, timeout=ANSWER_LIMIT)

    def secure(port: int) -> http.client.HTTPConnection:
        # Their certificates are generated in memory at start, so there is no CA to verify them with; this is loopback
        # only.
        unverified = ssl._create_unverified_context()
        return http.client.HTTPSConnection(LOOPBACK, port, timeout=ANSWER_LIMIT, context=unverified)

    return {
        "etcd": lambda: answers(plain(ports.etcd), "/health"),
        "dockerd": lambda: answers(UnixConnection(layout.docker_socket), "/_ping"),
        "registry": lambda: answers(plain(ports.registry), "/v2/"),
        "apiserver": lambda: answers(secure(ports.apiserver), "/readyz", state.token),
        "scheduler": lambda: answers(secure(ports.scheduler), "/healthz"),
        "controller-manager": lambda: answers(secure(ports.controller_manager), "/healthz"),
        "kubelet": lambda: answers(secure(ports.kubelet), "/healthz"),
        "device-plugin": lambda: is_registered(
            layout.registration, state.processes["device-plugin"].pid, KUBELET_SOCKET
        ),
    }
