"""Distance of a disk from its low-water mark, as measured during a run.

Sizes reported by executors since the last reading decide when to read again; only a reading taken after the last change
decides that the mark is reached.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

READING_TIMEOUT_SECONDS = 180.0
POLL_INTERVAL_SECONDS = 0.5


@dataclass(frozen=True)
class DiskReading:
    """Bytes to free down to the mark, the used share of the disk, and when both were read."""

    needed: int
    share: float | None
    at: float


ReadDisk = Callable[[], DiskReading | None]


class DiskLevel:
    """Tracks one disk during a run. `trash_bytes` are in its trash: not free yet, but bound to be."""

    def __init__(
        self,
        read: ReadDisk,
        stopping: threading.Event,
        trash_bytes: int = 0,
        now: Callable[[], float] = time.time,
        timeout: float = READING_TIMEOUT_SECONDS,
    ) -> None:
        self._read = read
        self._stopping = stopping
        self._trash_bytes = trash_bytes
        self._now = now
        self._timeout = timeout
        self._last = read()
        self._freed = 0
        self._freed_known = True
        self._changed_at: float | None = None

    @property
    def share(self) -> float | None:
        """Used share at the last reading."""
        return self._last.share if self._last is not None else None

    def record_freed(self, size: int | None) -> None:
        """Record that something was deleted; None: of unknown size."""
        self._freed += size or 0
        self._freed_known = bool(size)
        self._changed_at = self._now()

    def record_trashed(self, size: int) -> None:
        """Record that something was moved into the trash, or purged from it (negative)."""
        self._trash_bytes = max(0, self._trash_bytes + size)

    def reached(self) -> bool | None:
        """Whether the mark is reached; None if unknown."""
        reading = self._fresh()
        if reading is None and self._may_be_reached():
            reading = self._wait()
        if reading is None:
            return None if self._may_be_reached() else False
        self._last, self._freed, self._freed_known, self._changed_at = reading, 0, True, None
        return self._missing(reading) <= 0

    def settle(self) -> None:
        """Wait for a reading that includes all changes, and keep it as the last."""
        if self._changed_at is not None and (reading := self._wait()) is not None:
            self._last = reading

    def _may_be_reached(self) -> bool:
        """Whether the last reading and the sizes freed since do not rule out that the mark is reached."""
        return self._last is None or not self._freed_known or self._missing(self._last) - self._freed <= 0

    def _missing(self, reading: DiskReading) -> int:
        return reading.needed - self._trash_bytes

    def _fresh(self) -> DiskReading | None:
        """A reading taken after the last change."""
        reading = self._read()
        if reading is None or (self._changed_at is not None and reading.at <= self._changed_at):
            return None
        return reading

    def _wait(self) -> DiskReading | None:
        deadline = time.monotonic() + self._timeout
        while (reading := self._fresh()) is None and time.monotonic() < deadline:
            if self._stopping.wait(POLL_INTERVAL_SECONDS):
                return None
        return reading
