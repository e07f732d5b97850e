"""Whose turn it is to be joined again: every node once a cycle. Pure."""

from __future__ import annotations

from collections.abc import Sequence, Set


class RejoinSchedule:
    """Deals out the nodes so that each comes up once a cycle, evenly spread, unless its agent was heard in it."""

    def __init__(self, cycle: float) -> None:
        self._cycle = cycle
        self._began = float("-inf")
        self._waiting: list[str] = []
        self._heard: set[str] = set()  # in this round: they were joined then
        self._size = 0

    def due(self, names: Sequence[str], heard: Set[str], now: float) -> tuple[frozenset[str], bool]:
        """Given all nodes and those heard now, return those to be joined again, and whether a new round has begun."""
        new_round = now - self._began >= self._cycle
        left_over = [name for name in self._waiting if name not in self._heard] if new_round else []
        if new_round:
            self._began, self._waiting, self._heard, self._size = now, list(names), set(), len(names)
        self._heard |= heard
        wanted = round(self._size * (1 - (now - self._began) / self._cycle))
        dealt = [self._waiting.pop() for _ in range(len(self._waiting) - max(0, wanted))]
        return frozenset(name for name in (*dealt, *left_over) if name not in self._heard), new_round
