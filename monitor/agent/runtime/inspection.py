"""Containers are inspected (for pid and start time) once per change.

Listing containers is one cheap query; forty inspections every few seconds are not. The fact from an inspection is
therefore reused while the list shows the container unchanged.
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

# Timeout of one inspection, and pause before a failed one is repeated.
INSPECT_TIMEOUT_SECONDS = 3.0
RETRY_SECONDS = 300.0

Row = TypeVar("Row")


class ListedContainer(NamedTuple, Generic[Row]):
    """A container as listed. `revision` changes whenever the container may have changed; None is always a change."""

    id: str
    revision: Hashable
    row: Row


class _CachedFact(NamedTuple):
    revision: Hashable
    fact: ContainerFact
    retry_at: float


class InspectionCache(Generic[Row]):
    """Facts of listed containers. After a gap of `max_gap` seconds between two lists nothing is reused."""

    def __init__(self, clock: Clock, max_gap: float = math.inf) -> None:
        self._clock = clock
        self._max_gap = max_gap
        # Replaced as a whole, so that two threads can list at the same time.
        self._known: dict[str, _CachedFact] = {}
        self._listed_at = -math.inf

    def complete(
        self,
        listed: Iterable[ListedContainer[Row]],
        inspect: Callable[[Row], ContainerFact],
        from_list: Callable[[Row], ContainerFact],
    ) -> tuple[ContainerFact, ...]:
        """Facts of a list: cached, else from `inspect`, else from `from_list`, which queries nothing."""
        now = self._clock.monotonic()
        before = self._known if now - self._listed_at < self._max_gap else {}
        known: dict[str, _CachedFact] = {}
        responsive = True
        for item in listed:
            entry = before.get(item.id)
            if entry is None or item.revision is None or entry.revision != item.revision or now >= entry.retry_at:
                try:
                    if responsive:
                        entry = _CachedFact(item.revision, inspect(item.row), math.inf)
                    else:
                        entry = _CachedFact(item.revision, from_list(item.row), -math.inf)  # inspect in the next pass
                except GoneError:
                    continue
                except EngineError as error:
                    # Only one inspection per pass may time out: the next pass starts with the other containers.
                    responsive = responsive and not isinstance(error, NoAnswerError)
                    log.warning("container %s cannot be inspected: %s", item.id[:12], error)
                    entry = _CachedFact(item.revision, from_list(item.row), now + RETRY_SECONDS)
            known[item.id] = entry
        self._known, self._listed_at = known, now
        return tuple(entry.fact for entry in known.values())
