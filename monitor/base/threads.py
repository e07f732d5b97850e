"""Threads that do what they are handed, and that the end of the process does not wait for."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Crew:
    """So many threads. What is handed in must not raise."""

    def __init__(self, size: int, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._ending = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True) for number in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Callable[[], None]) -> None:
        """Have something done soon; nothing any more once it is stopped."""
        self._work.put(work)

    def stop(self, limit: float) -> None:
        """Take no more work, and wait for what is under way, but no longer than this."""
        self._ending = True
        for _ in self._threads:
            self._work.put(None)
        deadline = time.monotonic() + limit
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        while (work := self._work.get()) is not None and not self._ending:
            work()


def all_at_once(work: Callable[[T], R], given: Sequence[T], size: int, name: str) -> list[R]:
    """Given work that does not raise, return what it makes of each, in their order, so many at a time."""
    results: queue.SimpleQueue[tuple[int, R]] = queue.SimpleQueue()
    crew = Crew(min(size, len(given)), name)
    for number, each in enumerate(given):
        crew.submit(lambda number=number, each=each: results.put((number, work(each))))  # type: ignore[misc]  # of defaults mypy infers nothing
    found = dict(results.get() for _ in given)
    crew.stop(0.0)
    return [found[number] for number in range(len(given))]
