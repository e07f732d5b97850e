"""Garbage collection on a schedule.

Facts are freed by reference counting and create no cycles: a busy daemon creates about two objects per second that only
the collector frees. Automatic collection counts allocations instead, and stops every thread for a third of a second
every few seconds.
"""

from __future__ import annotations

import gc
from itertools import count

from monitor.base.threads import Periodic

INTERVAL_SECONDS = 1.0  # a step stops every thread for as long as it needs for what was created since
FULL_EVERY_COUNT = 600


class GarbageCollection:
    """Replaces the automatic collection between start() and stop()."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._loop = Periodic("garbage", self.step, INTERVAL_SECONDS)

    def start(self) -> None:
        gc.disable()
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()
        gc.enable()

    def step(self) -> None:
        """Collect the objects created since the last step; all from time to time."""
        everything = next(self._numbers) % FULL_EVERY_COUNT == 0
        gc.collect(2 if everything else 1)  # up to which generation
