"""How much goes out to each receiver, counted while this process runs."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.alert.model import Notification
from monitor.facts.base import Fact

OUTCOMES = ("sent", "failed", "parked")


class DeliveryStats(Fact, frozen=True, kw_only=True):
    """What became of attempts to deliver to a receiver, and what is in its outbox.

    `took` is how old the last message was when it arrived. A message that is parked was refused for good.
    """

    receiver: str
    waiting: int
    parked: int
    outcomes: dict[str, int]
    took: float | None = None
    failing_since: float | None = None


class DeliveryCounters:
    """Counts what becomes of attempts. Written by one thread, read by any."""

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.took: float | None = None

    def sent(self, notifications: Iterable[Notification], now: float) -> None:
        """Count what has arrived now; the oldest of it says how long that took."""
        self.outcomes["sent"] += 1
        self.took = max((max(0.0, now - each.at) for each in notifications), default=self.took)

    def failed(self) -> None:
        """Count what is tried again later."""
        self.outcomes["failed"] += 1

    def parked(self) -> None:
        """Count what was refused for good."""
        self.outcomes["parked"] += 1
