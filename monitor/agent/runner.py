"""Runs each collector on a thread of its own, and says how each fares.

One thread a collector is the whole isolation: a collector that hangs holds its own thread, is therefore never started
twice, costs the others nothing, and carries on by itself when whatever held it lets go. Whether it is hung, and whether
what it last read is still fresh, is worked out when somebody asks, so no watchdog has to be trusted either.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from monitor.agent.collectors import AbsentError, Collector
from monitor.agent.settings import CollectorSchedule
from monitor.base.clock import Clock
from monitor.facts import CollectorFact

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of one collector's runs. Replaced as a whole, so that readers need no lock."""

    outcome: str = "starting"
    runs: int = 0
    failures: int = 0
    value: Any = None
    read_at: float | None = None  # monotonic, start of the run that gave `value`
    succeeded_at: float | None = None
    duration: float | None = None
    message: str | None = None
    running_since: float | None = None  # monotonic
    running_since_wall: float | None = None


class Worker:
    """One collector, its schedule and its thread."""

    def __init__(
        self, collector: Collector, schedule: CollectorSchedule, *, after: Sequence[Worker] = (), clock: Clock = time
    ) -> None:
        self.name = collector.name
        self._collector = collector
        self._schedule = schedule
        self._after = after
        self._clock = clock
        self._progress = Progress()
        self._stop = threading.Event()
        self._settled = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"collect-{self.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def run_once(self) -> None:
        """Run the collector now, on the calling thread."""
        began = self._clock.monotonic()
        self._progress = replace(self._progress, running_since=began, running_since_wall=self._clock.time())
        try:
            value = self._collector.collect()
        except AbsentError as absent:
            self._end(began, outcome="absent", value=None, read_at=None, message=str(absent))
        except Exception as error:  # a broken collector is data, never the end of the agent
            message = f"{type(error).__name__}: {error}"
            if self._progress.message != message:
                log.warning("collector %s failed: %s", self.name, message)
            self._end(began, outcome="failed", failures=self._progress.failures + 1, message=message)
        else:
            now = self._clock.time()
            trouble = getattr(self._collector, "trouble", None)
            self._end(began, outcome="ok", value=value, read_at=began, succeeded_at=now, message=trouble)
        self._settled.set()

    def fresh(self) -> Any:
        """Return what was last read, or None when there is nothing or it is too old to be true."""
        progress = self._progress
        if progress.read_at is None or self._clock.monotonic() - progress.read_at > self._max_age():
            return None
        return progress.value

    def fact(self) -> CollectorFact:
        """Return how this collector fares."""
        progress = self._progress
        hung = (
            progress.running_since is not None
            and self._clock.monotonic() - progress.running_since > self._schedule.limit
        )
        return CollectorFact(
            name=self.name,
            outcome=progress.outcome,
            interval_seconds=self._schedule.interval,
            runs=progress.runs,
            failures=progress.failures,
            duration_seconds=progress.duration,
            succeeded_at=progress.succeeded_at,
            hung_since=progress.running_since_wall if hung else None,
            message=progress.message,
        )

    def _max_age(self) -> float:
        """Two missed rounds and one that used all its time: older than that, a reading says nothing about now."""
        return 2 * self._schedule.interval + self._schedule.limit

    def _end(self, began: float, **changes: Any) -> None:
        self._progress = replace(
            self._progress,
            running_since=None,
            running_since_wall=None,
            runs=self._progress.runs + 1,
            duration=self._clock.monotonic() - began,
            **changes,
        )

    def _loop(self) -> None:
        for other in self._after:  # the first run is of more use once these have been read
            other._settled.wait(other._schedule.limit)
        due = self._clock.monotonic()
        while not self._stop.is_set():
            self.run_once()
            # Keep the beat, but never run twice to catch up on rounds that a hang has swallowed.
            due = max(due + self._schedule.interval, self._clock.monotonic())
            self._stop.wait(due - self._clock.monotonic())


class Runner:
    """All workers of an agent."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = {worker.name: worker for worker in workers}

    def start(self) -> None:
        for worker in self.workers.values():
            worker.start()

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.stop()

    def fresh(self, name: str) -> Any:
        """Return the fresh reading of the collector `name`, or None."""
        worker = self.workers.get(name)
        return worker.fresh() if worker else None

    def parts(self) -> dict[str, Any]:
        """Return every part of the snapshot that is known right now."""
        return {name: worker.fresh() for name, worker in self.workers.items()}

    def facts(self) -> tuple[CollectorFact, ...]:
        """Return how each collector fares."""
        return tuple(worker.fact() for worker in self.workers.values())
