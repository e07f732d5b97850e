"""What only asking about one container alone tells (its pid, when it started), asked once per change.

A list of containers is one cheap question; forty inspections every few seconds are not. So the fact made from an
inspection is kept for as long as the list shows the container unchanged.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from monitor.agent.runtime.api import EngineError, GoneError, NoAnswerError
from monitor.base.clock import Clock
from monitor.facts import ContainerFact

log = logging.getLogger(__name__)

# How long one container may take to answer, and when one that did not is asked again.
TIMEOUT = 3.0
ASK_AGAIN_AFTER = 300.0

Row = TypeVar("Row")


class Listed(NamedTuple, Generic[Row]):
    """A container as the list shows it. `mark` changes when the container may have; None is never unchanged."""

    id: str
    mark: Hashable
    row: Row


class _Known(NamedTuple):
    mark: Hashable
    fact: ContainerFact
    ask_again_at: float


class Details(Generic[Row]):
    """Completes lists of containers. `max_gap` is the time between two lists after which nothing is remembered."""

    def __init__(self, clock: Clock, max_gap: float = math.inf) -> None:
        self._clock = clock
        self._max_gap = max_gap
        # Replaced as a whole, so that two threads that list at once do not disturb each other.
        self._known: dict[str, _Known] = {}
        self._listed_at = -math.inf

    def complete(
        self,
        listed: Iterable[Listed[Row]],
        ask: Callable[[Row], ContainerFact],
        plain: Callable[[Row], ContainerFact],
    ) -> tuple[ContainerFact, ...]:
        """Given a list, return its facts: remembered, else what `ask` returns, else `plain`, which asks nobody."""
        now = self._clock.monotonic()
        before = self._known if now - self._listed_at < self._max_gap else {}
        known: dict[str, _Known] = {}
        patient = True
        for item in listed:
            entry = before.get(item.id)
            if entry is None or item.mark is None or entry.mark != item.mark or now >= entry.ask_again_at:
                try:
                    entry = _Known(item.mark, ask(item.row), math.inf) if patient else _at_once(item, plain)
                except GoneError:
                    continue
                except EngineError as error:
                    # One that hangs may take its time once a pass: the next pass starts with the others.
                    patient = patient and not isinstance(error, NoAnswerError)
                    log.warning("container %s is known by its list entry only: %s", item.id[:12], error)
                    entry = _Known(item.mark, plain(item.row), now + ASK_AGAIN_AFTER)
            known[item.id] = entry
        self._known, self._listed_at = known, now
        return tuple(entry.fact for entry in known.values())


def _at_once(item: Listed[Row], plain: Callable[[Row], ContainerFact]) -> _Known:
    """Return an entry that is replaced in the next pass."""
    return _Known(item.mark, plain(item.row), -math.inf)
