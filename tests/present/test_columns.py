"""Widths of the columns of a table: names stay whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.present.columns import GAP_COLUMNS, MIN_CELLS, Column, fit, measure


@pytest.mark.parametrize(
    ("name", "heading", "cells", "names", "expect"),
    [
        ("a name is never broken", "pod", ["team-a/bert-large-0"], True, Column(19, 19)),
        ("several names may stand below each other", "subject", ["node n1, gpu 3"], True, Column(14, 7)),
        ("a sentence wraps", "headline", ["The disk is almost full."], False, Column(24, 8)),
        ("what is short stays short", "for", ["2m"], False, Column(3, 3)),
        ("an empty column has its heading", "node", [""], True, Column(4, 4)),
    ],
)
def test_how_narrow_a_column_may_be(name: str, heading: str, cells: list[str], names: bool, expect: Column) -> None:
    assert measure(heading, cells, names=names, width=len) == expect


@pytest.mark.parametrize(
    ("name", "columns", "available", "expect"),
    [
        ("there is room", [Column(10, 4), Column(10, 4)], 40, [10, 10]),
        ("the widest gives way", [Column(10, 10), Column(50, 8)], 40, [10, 28]),
        ("then the next one", [Column(30, 8), Column(50, 8)], 42, [20, 20]),
        ("a name does not", [Column(30, 30), Column(20, 8)], 42, [30, 10]),
        ("too narrow for the names", [Column(30, 30), Column(20, 8)], 39, None),
    ],
)
def test_which_column_gives_way(name: str, columns: list[Column], available: int, expect: list[int] | None) -> None:
    assert fit(columns, available) == expect


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, MIN_CELLS)), min_size=1, max_size=9), st.integers(1, 200))
def test_it_fits_or_says_that_it_does_not(sizes: list[tuple[int, int]], available: int) -> None:
    columns = [Column(smallest + more, smallest) for more, smallest in sizes]
    room, widths = available - GAP_COLUMNS * (len(columns) - 1), fit(columns, available)
    if widths is None:
        assert sum(column.smallest for column in columns) > room
        return
    assert sum(widths) <= room
    limits = zip(widths, columns, strict=True)
    assert all(column.smallest <= width <= column.natural for width, column in limits)
