"""How fast a disk may be read: so many entries a second, so that whoever works on it does not notice."""

from __future__ import annotations

import threading
import time

from monitor.base.clock import Clock

_BURST_SECONDS = 0.1


class ScanRateLimiter:
    """Lets `per_second` entries through, shared by all threads; None lets all through."""

    def __init__(self, per_second: float | None, stop: threading.Event, clock: Clock = time) -> None:
        self._per_second = per_second
        self._stop = stop
        self._clock = clock
        self._lock = threading.Lock()
        self._free_at = clock.monotonic()
        self.limits = per_second is not None

    def take(self, entries: int) -> bool:
        """Given so many entries, wait until they may be read. Return False when to stop."""
        if self._per_second is None:
            return not self._stop.is_set()
        with self._lock:
            now = self._clock.monotonic()
            # What was not used in the last moment is lost: a pause must not be followed by a burst.
            self._free_at = max(self._free_at, now - _BURST_SECONDS) + entries / self._per_second
            wait = self._free_at - now
        return not self._stop.wait(max(0.0, wait))
