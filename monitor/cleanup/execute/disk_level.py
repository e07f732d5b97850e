"""How far a disk is from its low-water mark, by what was measured there: by the agent after each act, or by df.

What was freed since the last reading, as whoever freed it measured it, says when to look; only a reading that was taken
after that says that the mark is reached.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

READING_TIMEOUT_SECONDS = 180.0  # for how long a reading that is new enough is waited for
POLL_INTERVAL_SECONDS = 0.5


@dataclass(frozen=True)
class DiskReading:
    """What has to be freed down to the mark, how full the disk is, and when that was read."""

    needed: int
    share: float | None
    at: float


ReadDisk = Callable[[], DiskReading | None]


class DiskLevel:
    """Follows one disk during a run. `waiting` is what lies in its trash: it is not free yet, but will be."""

    def __init__(
        self,
        read: ReadDisk,
        stopping: threading.Event,
        waiting: int = 0,
        now: Callable[[], float] = time.time,
        patience: float = READING_TIMEOUT_SECONDS,
    ) -> None:
        self._read = read
        self._stopping = stopping
        self._waiting = waiting
        self._now = now
        self._patience = patience
        self._last = read()
        self._freed = 0
        self._sure = True
        self._changed_at: float | None = None

    @property
    def share(self) -> float | None:
        """Return how full the disk was when it was last read."""
        return self._last.share if self._last is not None else None

    def freed(self, size: int | None) -> None:
        """Note that something is gone from the disk; None: nobody knows how much."""
        self._freed += size or 0
        self._sure = bool(size)
        self._changed_at = self._now()

    def moved(self, size: int) -> None:
        """Note that something was moved into the trash, or out of it for good (then it is less)."""
        self._waiting = max(0, self._waiting + size)

    def reached(self) -> bool | None:
        """Return whether the mark is reached; None if that cannot be known."""
        reading = self._fresh()
        if reading is None and (self._last is None or not self._sure or self._left(self._last) - self._freed <= 0):
            reading = self._wait()
        if reading is None:
            return None if self._last is None or not self._sure or self._left(self._last) - self._freed <= 0 else False
        self._last, self._freed, self._sure, self._changed_at = reading, 0, True, None
        return self._left(reading) <= 0

    def settle(self) -> None:
        """Take a last reading, if there is one that knows of all that was done."""
        if self._changed_at is not None and (reading := self._wait()) is not None:
            self._last = reading

    def _left(self, reading: DiskReading) -> int:
        return reading.needed - self._waiting

    def _fresh(self) -> DiskReading | None:
        """Return a reading that was taken after the last change."""
        reading = self._read()
        if reading is None or (self._changed_at is not None and reading.at <= self._changed_at):
            return None
        return reading

    def _wait(self) -> DiskReading | None:
        deadline = time.monotonic() + self._patience
        while (reading := self._fresh()) is None and time.monotonic() < deadline:
            if self._stopping.wait(POLL_INTERVAL_SECONDS):
                return None
        return reading
