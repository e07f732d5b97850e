"""Our text format is identical to that of prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from prometheus_client import ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from monitor.agent.metrics import GROUPS
from monitor.base.metrics import MetricTable, label, text_of
from tests.support.snapshots import full_snapshot

HOSTILE = ("", " ", 'a"b', "a\\b", "a\nb", "\\n", '\\"', "\r\t\0", "名字", "{}=,", "\u2028", "a" * 10_000)
VALUES = (0.0, -1.0, 1.5, 1e6, 1e21, 123456789.0, 1e-9, float("inf"), float("-inf"), float("nan"))


class Families:
    """A collector for prometheus_client."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def odd() -> Iterable[Metric]:
    gauge = GaugeMetricFamily("odd", 'A "help" \\ with\ntwo lines.', labels=("z", "a"))
    counter = CounterMetricFamily("count", "Counts.", labels=("what",))
    for text in HOSTILE:
        gauge.add_metric((text, "x"), 1.0)
        counter.add_metric((text,), 1.0)
    plain = GaugeMetricFamily("plain", "Values.", labels=("number",))
    for number, value in enumerate(VALUES):
        plain.add_metric((str(number),), value)
    return (gauge, counter, plain, GaugeMetricFamily("alone", "Without labels.", 3.0))


@pytest.mark.parametrize(
    "families",
    [
        [*odd()],
        [*ProcessCollector(registry=None).collect()],
        [family for _, render in GROUPS for family in render(full_snapshot())],
    ],
    ids=["odd", "process", "agent"],
)
def test_it_is_what_the_library_writes(families: list[Metric]) -> None:
    assert text_of(families) == generate_latest(Families(families))


def test_a_family_without_samples_is_not_mentioned() -> None:
    assert text_of([GaugeMetricFamily("empty", "Nothing.", labels=("a",))]) == b""


def test_a_table_leaves_out_what_is_not_known() -> None:
    table: MetricTable[float | None] = MetricTable(
        ("a", "b"), (("g", "Gauge.", lambda v: v),), (("c", "Counter.", lambda v: None if v is None else v + 1),)
    )
    things = [(("x", ""), 1.0), (("y", "z"), None), (("x", ""), 5.0)]
    assert text_of(table.families(things)).decode().splitlines() == [
        "# HELP g Gauge.",
        "# TYPE g gauge",
        'g{a="x"} 1.0',
        "# HELP c_total Counter.",
        "# TYPE c_total counter",
        'c_total{a="x"} 2.0',
    ]
    assert [tuple(name) for name in table.names()] == [
        ("g", "gauge", "Gauge.", ("a", "b")),
        ("c_total", "counter", "Counter.", ("a", "b")),
    ]


@pytest.mark.parametrize(("given", "expect"), [(None, ""), (3, "3"), ("名", "名"), ("a\udcff", "a\\udcff")])
def test_a_label_is_always_valid(given: str | int | None, expect: str) -> None:
    assert label(given) == expect
