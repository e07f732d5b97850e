"""Schedule by which every node is joined again once per cycle."""

from __future__ import annotations

from collections.abc import Sequence, Set


class RejoinSchedule:
    """Spreads the nodes evenly over a cycle; a node whose agent was heard in the cycle is left out."""

    def __init__(self, cycle: float) -> None:
        self._cycle = cycle
        self._began = float("-inf")
        self._waiting: list[str] = []
        self._heard: set[str] = set()  # in this cycle: they were joined then
        self._size = 0

    def due(self, names: Sequence[str], heard: Set[str], now: float) -> tuple[frozenset[str], bool]:
        """Nodes to join again now, and whether a new cycle has begun. `heard` are those joined in this step anyway."""
        new_cycle = now - self._began >= self._cycle
        left_over = [name for name in self._waiting if name not in self._heard] if new_cycle else []
        if new_cycle:
            self._began, self._waiting, self._heard, self._size = now, list(names), set(), len(names)
        self._heard |= heard
        remaining = round(self._size * (1 - (now - self._began) / self._cycle))
        due = [self._waiting.pop() for _ in range(len(self._waiting) - max(0, remaining))]
        return frozenset(name for name in (*due, *left_over) if name not in self._heard), new_cycle
