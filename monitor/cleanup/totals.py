"""How much cleanup has done, counted while this process runs: the journal forgets old runs, a counter must not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

FINAL_STATES = ("done", "refused", "failed", "later")  # what may become of an item


@dataclass(frozen=True)
class CleanupTotals:
    """Runs by policy and how they ended, items by policy and what became of them, bytes that runs have freed.

    `last_run` is when the last run of each policy began, also before this process.
    """

    runs: Mapping[tuple[str, str], int]
    items: Mapping[tuple[str, str], int]
    freed_bytes: Mapping[str, int]
    last_run: Mapping[str, float]


class CleanupCounters:
    """Counts. For use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: Counter[tuple[str, str]] = Counter()
        self._items: Counter[tuple[str, str]] = Counter()
        self._freed: Counter[str] = Counter()

    def run_ended(self, policy: str, end: str | None, freed_bytes: int) -> None:
        """Count a run, and what it has freed."""
        with self._lock:
            self._runs[policy, end or ""] += 1
            self._freed[policy] += freed_bytes

    def item_ended(self, policy: str, word: str) -> None:
        """Count an item."""
        with self._lock:
            self._items[policy, word] += 1

    def cleaned(self, policies: Iterable[str], last_run: Mapping[str, float]) -> CleanupTotals:
        """Given the policies that there are, return what was counted; for each of them also what never happened."""
        known = tuple(policies)
        with self._lock:
            items = dict.fromkeys(((policy, word) for policy in known for word in FINAL_STATES), 0) | self._items
            return CleanupTotals(dict(self._runs), items, dict.fromkeys(known, 0) | self._freed, last_run)
