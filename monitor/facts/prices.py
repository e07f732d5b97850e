"""Prices of GPUs by model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from monitor.base.globs import matches_glob

MAX_REMEMBERED = 256  # models
MAX_EXACT_AMOUNT = 100.0  # below it, an amount has two decimals


@dataclass(frozen=True)
class GpuPrices:
    """Price of an hour of a GPU, by shell patterns of its model. The first pattern that matches counts."""

    currency: str
    hourly: tuple[tuple[str, float], ...]

    def of(self, model: str | None) -> float | None:
        """Price of an hour of a model; None if no pattern matches, or the model is unknown."""
        return _price(self.hourly, model) if model is not None else None


@lru_cache(maxsize=MAX_REMEMBERED)
def _price(hourly: tuple[tuple[str, float], ...], model: str) -> float | None:
    return next((price for pattern, price in hourly if matches_glob(model, pattern)), None)


def format_price(value: float, currency: str) -> str:
    """An amount with its currency: `12.50 CNY`, `12,345 CNY`."""
    return f"{format_amount(value)} {currency}"


def format_amount(value: float) -> str:
    """An amount of money without its currency, with two decimals if it is small."""
    return f"{value:,.2f}" if value < MAX_EXACT_AMOUNT else f"{value:,.0f}"
