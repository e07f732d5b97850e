"""Prices of GPUs in the configuration."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from monitor.config.root import Config

A100 = "NVIDIA A100-SXM4-80GB"


def config(cost: dict[str, Any] | None) -> Config:
    return Config.model_validate({"daemon": {"cost": cost}})


def test_the_first_pattern_that_matches_counts() -> None:
    prices = config({"currency": "CNY", "prices": {"NVIDIA A100*": 12.5, "NVIDIA*": 4}}).daemon.prices
    assert prices is not None
    assert (prices.of(A100), prices.of("NVIDIA H20"), prices.of("Tesla T4"), prices.of(None)) == (12.5, 4.0, None, None)
    assert prices.currency == "CNY"


def test_there_are_no_prices_by_default() -> None:
    assert config(None).daemon.prices is None


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("without a currency", {"prices": {"*": 1}}, "currency"),
    ("without prices", {"currency": "CNY"}, "prices"),
    ("no prices in it", {"currency": "CNY", "prices": {}}, "prices"),
    ("free of charge", {"currency": "CNY", "prices": {"*": 0}}, "greater than 0"),
    ("not a number", {"currency": "CNY", "prices": {"*": "nan"}}, "prices"),
    ("infinite", {"currency": "CNY", "prices": {"*": "inf"}}, "prices"),
    ("a long currency", {"currency": "renminbi yuan", "prices": {"*": 1}}, "currency"),
    ("a currency of two lines", {"currency": "C\nY", "prices": {"*": 1}}, "CNY, EUR"),
]


@pytest.mark.parametrize(("name", "cost", "expect"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_settings_are_rejected(name: str, cost: dict[str, Any], expect: str) -> None:
    with pytest.raises(ValidationError, match=expect):
        config(cost)
