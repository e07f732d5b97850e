"""Comparison of successive versions of a sequence."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from monitor.base.sequences import changed_positions

ONE, OTHER = object(), object()


@pytest.mark.parametrize(
    ("before", "after", "expect"),
    [
        ((), (), []),
        ((ONE, OTHER), (ONE, OTHER), []),
        ((ONE, OTHER), [ONE, ONE], [1]),
        (([],), ([],), [0]),  # equal, but another object
        ((ONE,), (ONE, OTHER), [0, 1]),
        ((ONE, OTHER), (ONE,), [0]),
    ],
)
def test_the_positions_that_hold_another_object(
    before: Sequence[object], after: Sequence[object], expect: list[int]
) -> None:
    assert list(changed_positions(before, after)) == expect
