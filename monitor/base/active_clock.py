"""Running time of this process, without the time in which it was stopped, frozen or had no core."""

from __future__ import annotations

import time
from collections.abc import Callable

TICK_SECONDS = 0.5  # maximum between two ticks
MAX_TICK_GAP_SECONDS = 2.0  # a longer gap counts as this much active time


class ActiveClock:
    """A clock that stands still while the process does. Its owner calls tick() at least every TICK_SECONDS.

    A debugger, a frozen container or a suspended machine stops all threads while the monotonic clock continues, so that
    every peer seems to have been silent for long. By this clock none was.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last = (0.0, monotonic())  # active seconds until the last tick, and its time; replaced as a whole

    def tick(self) -> None:
        self._last = self._now()

    def seconds(self) -> float:
        """Active seconds."""
        return self._now()[0]

    def _now(self) -> tuple[float, float]:
        (active, at), now = self._last, self._monotonic()
        return active + min(now - at, MAX_TICK_GAP_SECONDS), now
