"""Counters of cleanup since the start of the process: the journal forgets old runs, a counter must not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FINAL_STATES = ("done", "refused", "failed", "later")


@dataclass(frozen=True)
class CleanupTotals:
    """Runs by policy and end reason, items by policy and final state, and bytes freed by policy.

    `last_run` is the start of the last run of each policy, including runs before this process.
    """

    runs: Mapping[tuple[str, str], int]
    items: Mapping[tuple[str, str], int]
    freed_bytes: Mapping[str, int]
    last_run: Mapping[str, float]


class CleanupCounters:
    """Thread-safe counters."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: Counter[tuple[str, str]] = Counter()
        self._items: Counter[tuple[str, str]] = Counter()
        self._freed: Counter[str] = Counter()

    def run_ended(self, policy: str, end: str | None, freed_bytes: int) -> None:
        with self._lock:
            self._runs[policy, end or ""] += 1
            self._freed[policy] += freed_bytes

    def item_ended(self, policy: str, state: str) -> None:
        with self._lock:
            self._items[policy, state] += 1

    def totals(self, policies: Iterable[str], last_run: Mapping[str, float]) -> CleanupTotals:
        """Totals so far, with zeros for these policies where nothing happened yet."""
        names = tuple(policies)
        with self._lock:
            items = dict.fromkeys(((policy, state) for policy in names for state in FINAL_STATES), 0) | self._items
            return CleanupTotals(dict(self._runs), items, dict.fromkeys(names, 0) | self._freed, last_run)
