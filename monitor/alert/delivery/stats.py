"""Delivery statistics per receiver, since the start of the process."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.alert.model import Notification
from monitor.facts.base import Fact

OUTCOMES = ("sent", "failed", "parked")


class DeliveryStats(Fact, frozen=True, kw_only=True):
    """Outcomes of delivery attempts to a receiver, and the size of its outbox.

    `took` is the age of the last message on arrival. Parked messages were permanently refused.
    """

    receiver: str
    waiting: int
    parked: int
    outcomes: dict[str, int]
    took: float | None = None
    failing_since: float | None = None


class DeliveryCounters:
    """Counts outcomes of delivery attempts. Written by one thread, read by any."""

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.took: float | None = None

    def sent(self, notifications: Iterable[Notification], now: float) -> None:
        """Count a delivery; its age is that of the oldest notification."""
        self.outcomes["sent"] += 1
        self.took = max((max(0.0, now - notification.at) for notification in notifications), default=self.took)

    def failed(self) -> None:
        """Count a failure that will be retried."""
        self.outcomes["failed"] += 1

    def parked(self) -> None:
        """Count a permanent refusal."""
        self.outcomes["parked"] += 1
