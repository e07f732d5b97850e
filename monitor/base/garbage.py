"""Garbage collection on a schedule.

Facts are freed by reference counting and create no cycles, but as many are allocated as freed: the collector of Python,
which counts the difference, starts late, finds many objects, and stops every thread for a third of a second.
"""

from __future__ import annotations

import gc
from itertools import count

from monitor.base.threads import Periodic

YOUNG_INTERVAL_SECONDS = 1.0
MIDDLE_EVERY_COUNT = 10  # collections of young objects
FULL_EVERY_COUNT = 600


class GarbageCollection:
    """Replaces the automatic collection between start() and stop()."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._loop = Periodic("garbage", self.step, YOUNG_INTERVAL_SECONDS)

    def start(self) -> None:
        gc.disable()
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()
        gc.enable()

    def step(self) -> None:
        """Collect young objects; from time to time also older ones, and all."""
        number = next(self._numbers)
        gc.collect(2 if number % FULL_EVERY_COUNT == 0 else 1 if number % MIDDLE_EVERY_COUNT == 0 else 0)
