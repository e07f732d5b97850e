"""What GPU hours cost, and what is said about those without a price."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.facts.prices import GpuPrices
from monitor.report.buckets import HOUR, Bucket
from monitor.report.cost_text import cost_cell, cost_texts
from monitor.report.model import Report, ReportInputs, make_report
from tests.report.reports import A100, PRICES, SINCE, T4, UNTIL

H100 = "NVIDIA H100 80GB HBM3"


def held(user: str, model: str | None = A100, share: float = 1.0, **hours: float) -> Bucket:
    seconds: dict[str, Any] = {name: value * HOUR for name, value in hours.items()}
    return Bucket(hour=int(SINCE), user=user, model=model, share=share, **seconds)


def priced(*buckets: Bucket, prices: GpuPrices | None = PRICES) -> Report:
    return make_report(ReportInputs(buckets=buckets, prices=prices), SINCE, UNTIL, "user")


COSTS: list[tuple[str, list[Bucket], float | None, float | None, str | None, str | None]] = [
    ("allocated", [held("li", allocated=10, used=5)], 125.0, 0.0, "125", "0.00"),
    ("the first pattern that matches", [held("li", H100, allocated=10)], 40.0, 0.0, "40.00", "0.00"),
    ("idle is part of allocated, zombie is not", [held("li", allocated=10, idle=4, zombie=2)],
     150.0, 75.0, "150", "75.00"),
    ("what no pod held costs nothing", [held("li", free=10, faulty=3, unknown=2)], 0.0, 0.0, "0.00", "0.00"),
    ("a slice costs its part", [held("li", share=0.143, allocated=100, idle=100)], 178.75, 178.75, "179", "179"),
    ("no price is never 0", [held("li", T4, allocated=10, idle=1)], None, None, None, None),
    ("no model, no price", [held("li", None, allocated=10)], None, 0.0, None, "0.00"),
    ("partly without a price", [held("li", allocated=10, idle=1), held("li", T4, allocated=1, idle=1)],
     125.0, 12.5, "≥125", "≥12.50"),
    ("waste with a price", [held("li", allocated=10, idle=1), held("li", T4, allocated=1)],
     125.0, 12.5, "≥125", "12.50"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "buckets", "cost", "wasted", "cell", "wasted_cell"), COSTS, ids=[c[0] for c in COSTS])
def test_cost(
    name: str,
    buckets: list[Bucket],
    cost: float | None,
    wasted: float | None,
    cell: str | None,
    wasted_cell: str | None,
) -> None:
    made = priced(*buckets)
    for row in (*made.rows, made.total):
        assert row.cost == pytest.approx(cost)
        assert row.wasted_cost == pytest.approx(wasted)
        assert (cost_cell(row, "cost"), cost_cell(row, "wasted_cost")) == (cell, wasted_cell)


def test_cost_is_of_the_same_hours_as_the_report() -> None:
    made = priced(held("li", allocated=7, idle=3, zombie=2), held("wang", H100, allocated=5, zombie=1))
    for row, price in zip(sorted(made.rows, key=lambda row: row.name or ""), (12.5, 4.0), strict=True):
        assert row.cost == pytest.approx((row.allocated_hours + row.zombie_hours) * price)
        assert row.wasted_cost == pytest.approx(row.wasted_hours * price)


def test_models_without_a_price_are_named_the_most_hours_first() -> None:
    models = [held("li", f"GPU {number}", allocated=number) for number in range(5)]
    made = priced(*models, held("li", None, allocated=3), held("li", allocated=1))
    assert [(each.model, each.hours) for each in made.unpriced] == [
        ("GPU 4", 4.0), ("GPU 3", 3.0), ("GPU 2", 2.0), ("GPU 1", 1.0), (None, 3.0),
    ]  # fmt: skip
    texts = {text.key: text.values for text in cost_texts(made)}
    assert texts["report.unpriced"] == {"models": "GPU 4 (4.0 h), GPU 3 (3.0 h), GPU 2 (2.0 h), …"}
    assert texts["report.unpriced-share"] == {"hours": "3.0"}


def test_without_prices_a_report_has_no_cost() -> None:
    made = priced(held("li", allocated=10, idle=4), prices=None)
    assert (made.currency, made.unpriced, made.total.cost, made.total.wasted_cost) == (None, (), None, None)
    assert cost_texts(made) == ()
