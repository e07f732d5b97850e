"""Comparison of successive versions of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import is_not


def changed_positions(before: Sequence[object], after: Sequence[object]) -> Sequence[int]:
    """Positions with another object than before; all if the number of objects differs.

    Only references are compared, so that thousands of unchanged objects cost microseconds.
    """
    if len(before) != len(after):
        return range(len(after))
    return list(compress(range(len(after)), map(is_not, before, after)))
