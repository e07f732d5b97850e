"""Running time of this process, without the time it was stopped, frozen or starved of CPU."""

from __future__ import annotations

import time
from collections.abc import Callable

TICK_SECONDS = 0.5  # at most between two ticks
MAX_TICK_GAP_SECONDS = 2.0  # time between two ticks beyond this does not count


class ActiveClock:
    """A clock that stands still while the process does; its owner calls tick() every TICK_SECONDS.

    A debugger, a frozen container or a sleeping machine stops all threads while the monotonic clock continues, and
    afterwards every agent would seem to have been silent for long.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last = (0.0, monotonic())  # active seconds at the last tick, and its time; replaced atomically

    def tick(self) -> None:
        self._last = self._now()

    def seconds(self) -> float:
        """Active seconds."""
        return self._now()[0]

    def _now(self) -> tuple[float, float]:
        (active, at), now = self._last, self._monotonic()
        return active + min(now - at, MAX_TICK_GAP_SECONDS), now
