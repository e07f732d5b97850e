"""Shared test helpers: require real components, wait for conditions instead of sleeping."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

import pytest


def need(condition: bool, what: str) -> None:
    """Skip the test if `condition` is false, naming the missing component; fail it under CI."""
    if condition:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have it: {what}", pytrace=False)
    pytest.skip(f"needs {what}")


MIN_WAIT_SECONDS = float(os.environ.get("MIN_WAIT_SECONDS", "60"))  # headroom for a machine with fully busy cores

# Limit of calls in tests where one hangs: more than the others need on a machine with fully busy cores.
HANG_LIMIT_SECONDS = 3.0


def wait_until(predicate: Callable[[], object], timeout: float, what: str) -> None:
    """Return as soon as `predicate` is true; fail the test after `timeout` seconds (at least MIN_WAIT_SECONDS)."""
    timeout = max(timeout, MIN_WAIT_SECONDS)
    deadline = time.monotonic() + timeout
    while not predicate():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {timeout} s: {what}")
        time.sleep(0.02)


def free_port(host: str = "127.0.0.1") -> int:
    """An unused port on a loopback address."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
