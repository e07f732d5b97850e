"""Rate limit of a scan, so that it does not slow down other users of the disk."""

from __future__ import annotations

import threading
import time

from monitor.base.clock import Clock

_BURST_SECONDS = 0.1


class ScanRateLimiter:
    """Limits all threads of a scan together to `per_second` entries; None means no limit."""

    def __init__(self, per_second: float | None, stop: threading.Event, clock: Clock = time) -> None:
        self._per_second = per_second
        self._stop = stop
        self._clock = clock
        self._lock = threading.Lock()
        self._free_at = clock.monotonic()
        self.is_limited = per_second is not None

    def acquire(self, entries: int) -> bool:
        """Wait until this many entries may be read. Return False if the scan is to stop."""
        if self._per_second is None:
            return not self._stop.is_set()
        with self._lock:
            now = self._clock.monotonic()
            # Unused capacity beyond the burst is lost: a pause must not be followed by a burst.
            self._free_at = max(self._free_at, now - _BURST_SECONDS) + entries / self._per_second
            wait = self._free_at - now
        return not self._stop.wait(max(0.0, wait))
