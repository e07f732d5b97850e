"""What GPU hours cost: those of pods and zombies, at the price of their model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monitor.facts.base import Fact
from monitor.facts.prices import GpuPrices
from monitor.report.buckets import HOUR, Bucket


class UnpricedHours(Fact, frozen=True, kw_only=True):
    """GPU hours without a price. `model` is None if the model, or the size of a share of it, was not recorded."""

    model: str | None
    hours: float


@dataclass
class HeldCost:
    """Cost of what an owner held, and of the part that was wasted; GPU hours without a price are counted apart."""

    cost: float = 0.0
    wasted: float = 0.0
    priced_hours: float = 0.0
    priced_wasted_hours: float = 0.0
    unpriced_hours: float = 0.0
    unpriced_wasted_hours: float = 0.0

    def add(self, bucket: Bucket, prices: GpuPrices) -> None:
        """Add the hours of a bucket."""
        hours, wasted = held_hours(bucket), (bucket.idle + bucket.zombie) / HOUR
        price = prices.of(bucket.model)
        if price is None:
            self.unpriced_hours += hours
            self.unpriced_wasted_hours += wasted
            return
        self.priced_hours += hours
        self.priced_wasted_hours += wasted
        self.cost += hours * bucket.share * price
        self.wasted += wasted * bucket.share * price

    def figures(self) -> dict[str, Any]:
        """Fields of a row of a report. An amount is None if nothing of it has a price."""
        return {
            "cost": None if self.unpriced_hours and not self.priced_hours else self.cost,
            "wasted_cost": None if self.unpriced_wasted_hours and not self.priced_wasted_hours else self.wasted,
            "unpriced_hours": self.unpriced_hours,
            "unpriced_wasted_hours": self.unpriced_wasted_hours,
        }


def held_hours(bucket: Bucket) -> float:
    """GPU hours held by pods, live or not."""
    return (bucket.allocated + bucket.zombie) / HOUR


def unpriced_hours(buckets: Iterable[Bucket], prices: GpuPrices) -> tuple[UnpricedHours, ...]:
    """Held GPU hours without a price by model, the most first."""
    sums: defaultdict[str | None, float] = defaultdict(float)
    for bucket in buckets:
        if (hours := held_hours(bucket)) and prices.of(bucket.model) is None:
            sums[bucket.model] += hours
    ordered = sorted(sums.items(), key=lambda item: (item[0] is None, -item[1], item[0] or ""))
    return tuple(UnpricedHours(model=model, hours=hours) for model, hours in ordered)
