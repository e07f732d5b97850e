"""Connections that nothing closed do not fail a run of end-to-end tests; other leaks still do."""

from __future__ import annotations

import gc
import socket
import ssl
import sys
import warnings
from typing import Any

import pytest

from tests.e2e.conftest import ignore_dropped_connections


class Cycle:
    """Keeps something until garbage is collected."""

    def __init__(self, kept: object) -> None:
        self.kept, self.itself = kept, self


def dropped() -> ssl.SSLSocket:
    return ssl.create_default_context().wrap_socket(socket.socket(), server_hostname="x")


@pytest.mark.parametrize(("make", "reported"), [(dropped, 0), (socket.socket, 1)])
def test_what_is_reported(make: Any, reported: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    gc.collect()
    monkeypatch.setattr(sys, "unraisablehook", found.append)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        ignore_dropped_connections()
        Cycle(make())
        gc.collect()
    assert len(found) == reported
