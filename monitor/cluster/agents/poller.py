"""Polls the agents on one schedule with a bounded number of threads, so that no agent delays another.

Each agent is polled at its own offset within the interval, so that a thousand agents do not answer at once. An agent
that does not answer occupies one thread for at most the time limit, and is polled less and less often. Agents that are
not known to answer promptly have their own workers, on which the prompt ones do not depend.
"""

from __future__ import annotations

import heapq
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from monitor.base.active_clock import TICK_SECONDS, ActiveClock
from monitor.base.peer_http import PeerTls
from monitor.base.text import shorten
from monitor.base.threads import Periodic, WorkerPool
from monitor.cluster.agents.client import AgentError, SnapshotClient
from monitor.cluster.agents.snapshot import SnapshotFollower
from monitor.facts.agents import AgentFact

log = logging.getLogger(__name__)
MAX_SKIPPED_INTERVALS = 8  # a silent agent is polled at least once in this many
FIRST_SPREAD_SECONDS = 1.0  # the first polls come quickly: the daemon has just been started and a user is waiting
TARGET_REFRESH_SECONDS = 5.0
MIN_STEP_SECONDS = 0.05  # polls that are due within this time start together
# After a container has failed: the agent reads its log within seconds.
HASTENED_INTERVAL_SECONDS = 2.0
HASTENED_FOR_SECONDS = 10.0
MAX_ERROR_CHARS = 500
CLOCK_STEP_SECONDS = 1.0  # a larger change of the offset between the clocks means that one was set or stood still

Fetch = Callable[[str, str], bytes]  # "host:port" and the version that is known -> the agent's update
Targets = Mapping[str, str | None]  # "host:port" -> name of the node, if known


@dataclass(frozen=True)
class PollSettings:
    """How agents are polled: interval and time limit in seconds, number of workers, credentials."""

    interval: float
    limit: float
    crew: int
    token: str | None = field(repr=False)
    tls: PeerTls | None = None


@dataclass(eq=False)
class _PolledTarget:
    """A target as long as it exists. Answers that arrive later are dropped, even if the same target exists again."""

    target: str
    node: str | None
    phase: float  # offset of its polls within the interval, from 0 to 1
    fact: AgentFact
    clock_offset: float  # when the fact was recorded
    follower: SnapshotFollower = field(default_factory=SnapshotFollower)
    due: float = math.inf  # monotonic, of the next poll; infinite while it is being polled
    hastened_until: float = -math.inf  # monotonic


class AgentPoller:
    """Keeps an `AgentFact` for each target."""

    def __init__(
        self,
        settings: PollSettings,
        targets: Callable[[], Targets],
        fetch: Fetch | None = None,
        on_answer: Callable[[AgentFact], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._targets = targets
        self._http = SnapshotClient(settings.limit, settings.token, settings.tls, keep_connections=True)
        self._fetch = fetch or self._http
        self._on_answer = on_answer
        self._lock = threading.Lock()
        self._polled: dict[str, _PolledTarget] = {}  # sorted by target
        self._known: dict[str, str | None] = {}  # the targets at the last update
        self._names: dict[str, str] = {}  # target -> node name that the agent reports, where no other source names it
        self._due: list[tuple[float, str, _PolledTarget]] = []  # heap of the targets that are not being polled
        self._refresh_at = 0.0
        self._step_at = math.inf  # monotonic, of the next step of the schedule
        self._clock = ActiveClock()
        self._schedule = Periodic("agent-schedule", self._run_schedule, TICK_SECONDS)
        self._workers: tuple[WorkerPool, WorkerPool] | None = None  # for prompt and for slow agents

    def start(self) -> None:
        """Start the schedule and the workers: half of them for slow agents, but at least one of each."""
        size = self._settings.crew
        prompt, slow = max(1, size - size // 2), max(1, size // 2)
        self._workers = WorkerPool(prompt, "agent-poll"), WorkerPool(slow, "agent-wait")
        self._schedule.start()

    def stop(self) -> None:
        """Stop all threads, including those that wait for an answer."""
        self._schedule.stop()
        for pool in self._workers or ():
            pool.stop(0.0)
        self._http.close()

    def facts(self) -> tuple[AgentFact, ...]:
        """Facts of all agents, sorted by target, with times by the clock as it is set now."""
        offset = self.clock_offset()
        with self._lock:
            return tuple(
                [
                    polled.fact
                    if abs(step := offset - polled.clock_offset) < CLOCK_STEP_SECONDS
                    else _shifted(polled.fact, step)
                    for polled in self._polled.values()
                ]
            )

    def answered_once(self) -> bool:
        """Whether every agent has answered or failed once."""
        with self._lock:
            return all(polled.fact.received_at or polled.fact.failures for polled in self._polled.values())

    def clock_offset(self) -> float:
        """Wall clock minus active time. It changes only if the wall clock is set or the process stands still."""
        return time.time() - self._clock.seconds()

    def update_targets(self) -> None:
        """Add new targets, and drop those that are gone or have moved to another node."""
        targets = dict(self._targets())
        with self._lock:
            if targets == self._known:
                return
            self._known = targets
            spread = None if self._polled else min(FIRST_SPREAD_SECONDS, self._settings.interval)
            self._polled = {
                target: polled
                for target, polled in self._polled.items()
                if target in targets and targets[target] == polled.node
            }
            self._names = {target: name for target, name in self._names.items() if target in self._polled}
            self._due = [entry for entry in self._due if self._is_current(entry[2])]
            heapq.heapify(self._due)
            for target in targets.keys() - self._polled.keys():
                self._add(target, targets[target], spread)
            self._polled = dict(sorted(self._polled.items()))
        self._schedule.wake()

    def _add(self, target: str, node: str | None, spread: float | None) -> None:
        fact = AgentFact(target=target, node=node)
        phase = random.random()  # noqa: S311  # spreads load, keeps no secret
        polled = _PolledTarget(target, node, phase, fact, self.clock_offset())
        now = time.monotonic()
        due = self._next_poll(polled, now) if spread is None else now + phase * spread
        self._polled[target] = polled
        self._push(polled, due)

    def _push(self, polled: _PolledTarget, due: float) -> None:
        polled.due = due
        heapq.heappush(self._due, (due, polled.target, polled))

    def hasten(self, nodes: Collection[str]) -> None:
        """Poll the agents of these nodes more often for a few seconds: they are about to report something."""
        if not nodes:
            return
        now = time.monotonic()
        with self._lock:
            for polled in self._polled.values():
                if polled.fact.node in nodes and polled.fact.failures == 0:
                    polled.hastened_until = now + HASTENED_FOR_SECONDS
                    if polled.due != math.inf and polled.due > now + HASTENED_INTERVAL_SECONDS:
                        self._push(polled, now + HASTENED_INTERVAL_SECONDS)
        self._schedule.wake()

    def _is_current(self, polled: _PolledTarget) -> bool:
        return self._polled.get(polled.target) is polled

    def _run_schedule(self) -> float:
        """Refresh the targets if due, submit the polls that are due, and return the seconds until the next step."""
        if time.monotonic() >= self._refresh_at:
            try:
                self.update_targets()
            except Exception:  # the known targets are kept
                log.exception("cannot determine the agents to poll")
            self._refresh_at = time.monotonic() + min(TARGET_REFRESH_SECONDS, self._settings.interval)
        self._clock.tick()
        with self._lock:
            self._submit_due(time.monotonic())
            now = time.monotonic()
            next_at = min(self._refresh_at, self._due[0][0]) if self._due else self._refresh_at
            pause = min(TICK_SECONDS, max(MIN_STEP_SECONDS, next_at - now))
            self._step_at = now + pause
        return pause

    def _submit_due(self, now: float) -> None:
        assert self._workers is not None
        prompt, slow = self._workers
        while self._due and self._due[0][0] <= now:
            due, _, polled = heapq.heappop(self._due)
            if due != polled.due:  # hastened meanwhile
                continue
            polled.due = math.inf
            (prompt if self._is_prompt(polled.fact) else slow).submit(partial(self._poll, polled))

    def _is_prompt(self, fact: AgentFact) -> bool:
        """Whether the last poll was answered, and well within the limit."""
        latency = fact.latency_seconds
        return fact.failures == 0 and latency is not None and latency < self._settings.limit / 4

    def _poll(self, polled: _PolledTarget) -> None:
        if not self._is_current(polled):
            return
        fact = self._read(polled)
        with self._lock:
            if not self._is_current(polled):
                return
            polled.fact, polled.clock_offset = fact, self.clock_offset()
        self._notify(fact)
        with self._lock:
            if self._is_current(polled):
                self._push(polled, self._next_poll(polled, time.monotonic()))
            early = polled.due < self._step_at
        if early:
            self._schedule.wake()

    def _read(self, polled: _PolledTarget) -> AgentFact:
        """Fact of an agent after reading its snapshot."""
        began, wall = time.monotonic(), time.time()
        before = _shifted(polled.fact, self.clock_offset() - polled.clock_offset)
        try:
            snapshot = polled.follower.read(partial(self._fetch, polled.target))
            node = polled.node or self._reported_name(polled.target, snapshot.node)
            if snapshot.node != node:  # actions planned from the snapshot must not reach the node that it names
                snapshot = msgspec.structs.replace(snapshot, node=node)
        except AgentError as error:
            return _failed(before, wall, str(error))
        except Exception as error:  # one odd agent must not stop the polling of others
            log.exception("cannot poll the agent at %s", polled.target)
            return _failed(before, wall, type(error).__name__)
        return AgentFact(
            target=polled.target,
            node=node,
            snapshot=snapshot,
            received_at=time.time(),
            latency_seconds=time.monotonic() - began,
        )

    def _reported_name(self, target: str, name: str) -> str:
        """Node name that an agent reports. Raise AgentError if another agent reported it first.

        Which of the two is wrong cannot be known, but no agent can take a name away from another.
        """
        with self._lock:
            other = next((known for known, taken in self._names.items() if taken == name and known != target), None)
            if other is not None:
                raise AgentError(f"says that it is on the node of {other}")
            self._names[target] = name
        return name

    def _notify(self, fact: AgentFact) -> None:
        try:
            self._on_answer(fact)
        except Exception:  # a listener must not stop the polling
            log.exception("a listener failed")

    def _next_poll(self, polled: _PolledTarget, now: float) -> float:
        """Time of the next poll. A silent agent skips more and more intervals, up to a bound."""
        interval = self._settings.interval
        intervals = min(max(1, polled.fact.failures - 1), MAX_SKIPPED_INTERVALS)
        regular = now - (now - polled.phase * interval) % interval + intervals * interval
        return min(regular, now + HASTENED_INTERVAL_SECONDS) if now < polled.hastened_until else regular


def _failed(fact: AgentFact, now: float, error: str) -> AgentFact:
    return msgspec.structs.replace(
        fact, silent_since=fact.silent_since or now, error=shorten(error, MAX_ERROR_CHARS), failures=fact.failures + 1
    )


def _shifted(fact: AgentFact, seconds: float) -> AgentFact:
    """Fact with its times moved by a step of the clock, which must not count as silence.

    The clock of a machine that wakes up or synchronises its time may jump by hours, and a daemon that was paused has
    polled no agent in the meantime.
    """
    if abs(seconds) < CLOCK_STEP_SECONDS:
        return fact
    return msgspec.structs.replace(
        fact,
        received_at=fact.received_at + seconds if fact.received_at is not None else None,
        silent_since=fact.silent_since + seconds if fact.silent_since is not None else None,
    )
