"""The clock as a parameter, so that tests control the time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """The part of the `time` module that is used; the module itself satisfies it."""

    def time(self) -> float:
        """Seconds since the epoch, as in facts."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump, for limits and ages."""
        ...
