"""A clock that stands still until a test moves it."""

from __future__ import annotations


class FakeClock:
    """Satisfies monitor.base.clock.Clock. Both of its times advance together."""

    def __init__(self, wall: float = 1_700_000_000.0) -> None:
        self._wall = wall
        self._passed = 0.0

    def advance(self, seconds: float) -> None:
        self._passed += seconds

    def set(self, seconds: float) -> None:
        """Set the time of day so much ahead, or back; only that."""
        self._wall += seconds

    def time(self) -> float:
        return self._wall + self._passed

    def monotonic(self) -> float:
        return 1000.0 + self._passed
