"""Settings of the prices of GPUs.

daemon:
  cost: {currency: CNY, prices: {"NVIDIA A100*": 12.5, "NVIDIA*": 4}}
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from monitor.base.units import quoted
from monitor.config.types import NonEmpty, Section
from monitor.facts.prices import GpuPrices

MAX_CURRENCY_CHARS = 8
MAX_PRICE = 1e6  # of an hour
MAX_PRICES = 256

Price = Annotated[float, Field(gt=0, le=MAX_PRICE)]


class CostConfig(Section):
    """Prices of an hour of a GPU by model: shell patterns; the first that matches counts.

    A model that matches none has no price, and reports say so.
    """

    currency: Annotated[NonEmpty, Field(max_length=MAX_CURRENCY_CHARS)]
    prices: Annotated[dict[NonEmpty, Price], Field(min_length=1, max_length=MAX_PRICES)]

    def check(self) -> None:
        if not self.currency.isprintable() or self.currency != self.currency.strip():
            raise ValueError(
                f"currency is {quoted(self.currency)}; write a name or sign such as CNY, EUR or \N{YEN SIGN}"
            )

    def settings(self) -> GpuPrices:
        return GpuPrices(self.currency, tuple(self.prices.items()))
