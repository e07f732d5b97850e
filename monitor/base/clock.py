"""The clock as a parameter, so that tests pass time instead of waiting for it."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """What the agent needs of the `time` module, which satisfies this."""

    def time(self) -> float:
        """Seconds since the epoch: what facts carry."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump: what limits and ages are measured with."""
        ...
