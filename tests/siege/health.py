"""Health checks like those of a kubelet, with the time that each took."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterable

import msgspec

from tests.security.flood import Address

CHECK_SECONDS = 1.0
OWN_ADDRESS = "127.0.2.1"  # of a client that is not among the attackers, as the kubelet of a node
SHARED_ADDRESS = "127.0.0.1"  # that of half of the attackers
GIVE_UP_SECONDS = 10.0


class HealthCheck(msgspec.Struct):
    """Seconds until the answer, and what went wrong instead of status 200."""

    seconds: float
    problem: str = ""


def check_health(address: Address, source: str) -> HealthCheck:
    """Request /healthz on a new connection."""
    began = time.monotonic()
    connection = http.client.HTTPConnection(*address, timeout=GIVE_UP_SECONDS, source_address=(source, 0))
    problem = ""
    try:
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            problem = f"status {response.status}"
    except (OSError, http.client.HTTPException) as error:
        problem = f"{type(error).__name__}: {error}"
    finally:
        connection.close()
    return HealthCheck(time.monotonic() - began, problem)


def keep_checking(address: Address, source: str, checks: list[HealthCheck], stopping: threading.Event) -> None:
    """Check every CHECK_SECONDS until `stopping` is set."""
    while not stopping.wait(CHECK_SECONDS):
        checks.append(check_health(address, source))


def failures_in_a_row(checks: Iterable[HealthCheck], limit_seconds: float) -> int:
    """The most checks in a row that failed or took longer: a kubelet restarts a container after three."""
    longest = current = 0
    for check in checks:
        current = current + 1 if check.problem or check.seconds > limit_seconds else 0
        longest = max(longest, current)
    return longest
