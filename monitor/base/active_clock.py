"""For how long this process has run, without the time in which it was stopped, frozen or had no core."""

from __future__ import annotations

import time
from collections.abc import Callable

TICK_SECONDS = 0.5  # seconds between two beats, at most
MAX_TICK_GAP_SECONDS = 2.0  # what is between two beats beyond this was not lived


class ActiveClock:
    """A clock that stands still while the process does. Somebody has to call beat() every BEAT seconds.

    A debugger, a frozen container or a machine that sleeps stops all threads, and the monotonic clock goes on: after
    that everybody seems to have been silent for long. By this clock nobody was.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last = (0.0, monotonic())  # what was lived until the last beat, and when that was; replaced as a whole

    def tick(self) -> None:
        self._last = self._now()

    def seconds(self) -> float:
        """Return how many seconds were lived."""
        return self._now()[0]

    def _now(self) -> tuple[float, float]:
        (lived, at), now = self._last, self._monotonic()
        return lived + min(now - at, MAX_TICK_GAP_SECONDS), now
