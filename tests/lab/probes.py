"""Readiness checks of components."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable

from tests.lab.engine import Engine
from tests.lab.http_probes import ANSWER_LIMIT, answers
from tests.lab.layout import KUBELET_SOCKET, LOOPBACK, Layout
from tests.lab.registration import is_registered
from tests.lab.state import State


def readiness(layout: Layout, state: State, engine: Engine) -> dict[str, Callable[[], bool]]:
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
        engine.component: engine.answers,
        "registry": lambda: answers(plain(ports.registry), "/v2/"),
        "apiserver": lambda: answers(secure(ports.apiserver), "/readyz", state.token),
        "scheduler": lambda: answers(secure(ports.scheduler), "/healthz"),
        "controller-manager": lambda: answers(secure(ports.controller_manager), "/healthz"),
        "kubelet": lambda: answers(secure(ports.kubelet), "/healthz"),
        "device-plugin": lambda: is_registered(
            layout.registration, state.processes["device-plugin"].pid, KUBELET_SOCKET
        ),
    }
