"""Tables of wording: the first fragment in the order of the table wins, however the table is searched."""

from __future__ import annotations

from random import Random

import pytest

from monitor.explain.error_chain import mount_phrases, pull_phrases, scheduling_phrases, start_phrases
from monitor.explain.error_chain.wording import Wording, find, wording

TABLES = [
    table
    for module in (mount_phrases, pull_phrases, scheduling_phrases, start_phrases)
    for table in vars(module).values()
    if isinstance(table, Wording)
]


def test_the_first_fragment_wins_across_groups() -> None:
    table = wording((1, ("device is busy",)), (2, ("timeout",)), (3, ("device is gone", "device")))
    assert find("a timeout: the device is gone", table) == 2
    assert find("the device is gone: the device is busy", table) == 1
    assert find("a device", table) == 3
    assert find("devic", table) is None
    assert find("", table) is None


def test_tables_have_fewer_groups_than_fragments() -> None:
    assert sum(len(table.groups) for table in TABLES) < 0.8 * sum(len(table.rows) for table in TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_every_table_is_searched_in_its_order(table: Wording[object]) -> None:
    random = Random(1)
    for _ in range(200):
        text = ": ".join(fragment for fragment, _ in random.choices(table.rows, k=3))
        assert find(text, table) == next(result for fragment, result in table.rows if fragment in text)
