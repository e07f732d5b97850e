"""Lab errors, and waiting for conditions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class LabError(Exception):
    """The lab cannot do what was requested; the message says why and, if known, what to do."""


def wait_for(ask: Callable[[], T | None], limit: float, what: str, *, every: float = 0.1) -> T:
    """Poll until the result is neither None nor False and return it; LabError after `limit` seconds."""
    deadline = time.monotonic() + limit
    while True:
        answer = ask()
        if answer is not None and answer is not False:
            return answer
        if time.monotonic() > deadline:
            raise LabError(f"not within {limit:g} s: {what}")
        time.sleep(every)
