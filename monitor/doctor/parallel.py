"""Calls side by side, of which some may never return: those are left behind when their time is over."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of a call: its value, its error, or neither, when its time was over."""

    value: T | None = None
    error: Exception | None = None

    @property
    def late(self) -> bool:
        return self.value is None and self.error is None


def side_by_side(calls: Sequence[Callable[[], T]], limit: float, crew: int = 32) -> list[Outcome[T]]:
    """Given calls that return something, return their outcomes, in their order, after at most `limit` seconds.

    The threads are daemons: one that hangs does not keep the process from ending.
    """
    outcomes: list[Outcome[T]] = [Outcome() for _ in calls]
    waiting: queue.SimpleQueue[tuple[int, Callable[[], T]]] = queue.SimpleQueue()
    for numbered in enumerate(calls):
        waiting.put(numbered)

    def work() -> None:
        while True:
            try:
                number, call = waiting.get_nowait()
            except queue.Empty:
                return
            outcomes[number] = _made(call)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(crew, len(calls)))]
    deadline = time.monotonic() + limit
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return list(outcomes)


def _made(call: Callable[[], T]) -> Outcome[T]:
    try:
        return Outcome(value=call())
    except Exception as error:  # whoever asked for the call knows what it means
        return Outcome(error=error)


class Once(Generic[T]):
    """A value that several checks need, and the first of them makes while the others wait."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: Outcome[T] | None = None

    def get(self) -> T:
        """Return the value, or raise what making it raised."""
        with self._lock:
            if self._made is None:
                self._made = _made(self._make)
        if self._made.error is not None:
            raise self._made.error
        assert self._made.value is not None
        return self._made.value
