"""Health checks like those of a kubelet, with the time that each took."""

from __future__ import annotations

import http.client
import threading
import time

import msgspec

from tests.security.flood import Address

CHECK_SECONDS = 1.0
GIVE_UP_SECONDS = 10.0


class HealthCheck(msgspec.Struct):
    """Seconds until the answer, and what went wrong instead of status 200."""

    seconds: float
    problem: str = ""


def check_health(address: Address) -> HealthCheck:
    """Request /healthz on a new connection."""
    began = time.monotonic()
    connection = http.client.HTTPConnection(*address, timeout=GIVE_UP_SECONDS)
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


def keep_checking(address: Address, checks: list[HealthCheck], stopping: threading.Event) -> None:
    """Check every CHECK_SECONDS until `stopping` is set."""
    while not stopping.wait(CHECK_SECONDS):
        checks.append(check_health(address))
