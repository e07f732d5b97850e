"""Runs each collector on its own thread and reports the state of each.

The thread is the isolation: a collector that hangs blocks only its own thread, is never started twice, and carries on
when the hang ends. Whether it is hung, and whether its last result is still fresh, is computed on request, so there is
no watchdog that could fail.
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
from monitor.base.text import MAX_TEXT_CHARS, shorten
from monitor.base.threads import Periodic
from monitor.facts import CollectorFact

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CollectorRunState:
    """Runs of one collector so far. Replaced as a whole, so that readers need no lock."""

    outcome: str = "starting"
    runs: int = 0
    failures: int = 0
    value: Any = None
    read_at: float | None = None  # monotonic, start of the run that returned `value`
    succeeded_at: float | None = None
    duration: float | None = None
    message: str | None = None
    running_since: float | None = None  # monotonic
    running_since_wall: float | None = None


class CollectorWorker:
    """One collector, its schedule and its thread."""

    def __init__(
        self,
        collector: Collector,
        schedule: CollectorSchedule,
        *,
        after: Sequence[CollectorWorker] = (),
        clock: Clock = time,
    ) -> None:
        self.name = collector.name
        self._collector = collector
        self._schedule = schedule
        self._after = after
        self._clock = clock
        self._state = CollectorRunState()
        self._first_run_ended = threading.Event()
        self._due: float | None = None  # monotonic, of the run in progress
        self._loop = Periodic(f"collect-{self.name}", self._run_on_schedule, schedule.interval)

    def start(self) -> None:
        self._loop.start()

    def stop(self, timeout: float = 0.0) -> None:
        """Start no further run, and wait up to `timeout` seconds for the one in progress."""
        self._loop.stop(timeout)

    def run_once(self) -> None:
        """Run the collector now, on the calling thread."""
        started = self._clock.monotonic()
        self._state = replace(self._state, running_since=started, running_since_wall=self._clock.time())
        try:
            value = self._collector.collect()
        except AbsentError as absent:
            self._end(started, outcome="absent", value=None, read_at=None, message=str(absent))
        except Exception as error:  # a broken collector is data and must not end the agent
            message = f"{type(error).__name__}: {error}"
            if self._state.message != message:
                log.warning("collector %s failed: %s", self.name, message)
            self._end(started, outcome="failed", failures=self._state.failures + 1, message=message)
        else:
            now = self._clock.time()
            if value == self._state.value:
                value = self._state.value  # who compares objects sees at once that nothing has changed
            warning = getattr(self._collector, "warning", None)
            self._end(started, outcome="ok", value=value, read_at=started, succeeded_at=now, message=warning)
        self._first_run_ended.set()

    def fresh(self) -> Any:
        """Last result; None if there is none or it is too old."""
        state = self._state
        if state.read_at is None or self._clock.monotonic() - state.read_at > self._max_age():
            return None
        return state.value

    def fact(self) -> CollectorFact:
        """State of this collector."""
        state = self._state
        hung = state.running_since is not None and self._clock.monotonic() - state.running_since > self._schedule.limit
        return CollectorFact(
            name=self.name,
            outcome=state.outcome,
            interval_seconds=self._schedule.interval,
            runs=state.runs,
            failures=state.failures,
            duration_seconds=state.duration,
            succeeded_at=state.succeeded_at,
            hung_since=state.running_since_wall if hung else None,
            message=shorten(state.message, MAX_TEXT_CHARS) if state.message else None,
        )

    def _max_age(self) -> float:
        """Two missed runs and one that takes its full limit."""
        return 2 * self._schedule.interval + self._schedule.limit

    def _end(self, started: float, **changes: Any) -> None:
        self._state = replace(
            self._state,
            running_since=None,
            running_since_wall=None,
            runs=self._state.runs + 1,
            duration=self._clock.monotonic() - started,
            **changes,
        )

    def _run_on_schedule(self) -> float:
        """Run once and return the pause before the next run."""
        if self._due is None:
            for other in self._after:  # the first run is more useful once these have results
                other._first_run_ended.wait(other._schedule.limit)
            self._due = self._clock.monotonic()
        self.run_once()
        # Keep the interval, but do not make up for runs missed during a hang.
        now = self._clock.monotonic()
        self._due = max(self._due + self._schedule.interval, now)
        return self._due - now


class CollectorRunner:
    """All collectors of an agent."""

    def __init__(self, workers: Sequence[CollectorWorker]) -> None:
        self.workers = {worker.name: worker for worker in workers}

    def start(self) -> None:
        for worker in self.workers.values():
            worker.start()

    def stop(self) -> None:
        for worker in self.workers.values():
            worker.stop()

    def fresh(self, name: str) -> Any:
        """Fresh result of the collector `name`, or None."""
        worker = self.workers.get(name)
        return worker.fresh() if worker else None

    def parts(self) -> dict[str, Any]:
        """The parts of the snapshot: the fresh result of each collector, or None."""
        return {name: worker.fresh() for name, worker in self.workers.items()}

    def facts(self) -> tuple[CollectorFact, ...]:
        """State of each collector."""
        return tuple(worker.fact() for worker in self.workers.values())
