"""A clock that only advances when a test moves it."""

from __future__ import annotations


class FakeClock:
    """Implements monitor.base.clock.Clock; wall clock and monotonic clock advance together."""

    def __init__(self, wall: float = 1_700_000_000.0) -> None:
        self._wall = wall
        self._passed = 0.0

    def advance(self, seconds: float) -> None:
        self._passed += seconds

    def set(self, seconds: float) -> None:
        """Step the wall clock forwards or backwards without advancing the monotonic clock."""
        self._wall += seconds

    def time(self) -> float:
        return self._wall + self._passed

    def monotonic(self) -> float:
        return 1000.0 + self._passed
