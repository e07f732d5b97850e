"""Polls the agents: one schedule, a bounded crew of threads, and no agent that can hold up another.

Each agent has its own moment in every interval, so that a thousand of them do not answer at once. One that does not
answer costs one thread for at most the time limit, and lets ever more of its moments pass. Who is not known to answer
promptly is asked by a part of the crew that the prompt ones do not depend on.
"""

from __future__ import annotations

import heapq
import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from monitor.base.active_clock import TICK_SECONDS, ActiveClock
from monitor.cluster.agents.client import AgentError, AgentTls, HttpFetch
from monitor.facts.agents import AgentFact
from monitor.facts.node import NodeSnapshot

log = logging.getLogger(__name__)
MAX_SKIPPED_INTERVALS = 8  # a silent agent is asked at least every so many intervals
FIRST_SPREAD_SECONDS = 1.0  # somebody has just started the daemon and is waiting
TARGET_REFRESH_SECONDS = 5.0
MAX_ERROR_CHARS = 500
CLOCK_STEP_SECONDS = 1.0  # seconds from which on a difference of the two clocks means that one was set, or that we stood still
_decode = msgspec.json.Decoder(NodeSnapshot).decode

Fetch = Callable[[str], bytes]
Targets = Mapping[str, str | None]  # "host:port" -> the node's name, where it is known


@dataclass(frozen=True)
class PollSettings:
    """How agents are asked."""

    interval: float
    limit: float
    crew: int
    token: str | None = field(repr=False)
    tls: AgentTls | None = None


@dataclass(eq=False)
class _PolledTarget:
    """A target for as long as it is one. What comes back after that belongs to nobody, even if it is one again."""

    target: str
    node: str | None
    phase: float  # which moment of an interval is its own, from 0 to 1
    fact: AgentFact
    clock: float  # by how much the time of day was ahead of our lifetime when the fact was noted


_Lane = queue.SimpleQueue[_PolledTarget | None]


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
        self._http = HttpFetch(settings.limit, settings.token, settings.tls)
        self._fetch = fetch or self._http
        self._on_answer = on_answer
        self._watched: dict[str, _PolledTarget] = {}
        self._names: dict[str, str] = {}  # target -> what it calls its node, where nobody else has said
        self._due: list[tuple[float, str, _PolledTarget]] = []  # a heap; a target is in it, in a lane, or being asked
        self._prompt: _Lane = queue.SimpleQueue()
        self._slow: _Lane = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._lifetime = ActiveClock()
        self._stopping = False

    @property
    def _crew(self) -> tuple[tuple[str, _Lane, int], ...]:
        """Half of the crew is for the slow ones. A crew of one becomes two: one for the prompt, one for the slow."""
        size = self._settings.crew
        return ("agent-poll", self._prompt, max(1, size - size // 2)), ("agent-wait", self._slow, max(1, size // 2))

    def start(self) -> None:
        """Start the schedule and the crew."""
        threading.Thread(target=self._keep_schedule, name="agent-schedule", daemon=True).start()
        for name, lane, size in self._crew:
            for number in range(size):
                threading.Thread(target=self._work, args=(lane,), name=f"{name}-{number}", daemon=True).start()

    def stop(self) -> None:
        """End all threads, also those that wait for an answer."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for _, lane, size in self._crew:
            for _ in range(size):
                lane.put(None)
        self._http.close()

    def facts(self) -> tuple[AgentFact, ...]:
        """Return what is known of every agent, in a stable order; its times by the clock as it is set now."""
        clock = self._clock()
        with self._changed:
            known = [self._watched[target] for target in sorted(self._watched)]
            return tuple(_set_by(each.fact, clock - each.clock) for each in known)

    def _clock(self) -> float:
        """Return by how much the time of day is ahead of our lifetime.

        It changes only when somebody sets the one, or the other stands still.
        """
        return time.time() - self._lifetime.seconds()

    def update_targets(self) -> None:
        """Take up new targets and forget those that are gone, or have become another node's."""
        wanted = dict(self._targets())
        with self._changed:
            spread = None if self._watched else min(FIRST_SPREAD_SECONDS, self._settings.interval)
            self._watched = {
                target: known
                for target, known in self._watched.items()
                if target in wanted and wanted[target] == known.node
            }
            self._names = {target: name for target, name in self._names.items() if target in self._watched}
            self._due = [entry for entry in self._due if self._is_watched(entry[2])]
            heapq.heapify(self._due)
            for target in wanted.keys() - self._watched.keys():
                self._take_up(target, wanted[target], spread)
            self._changed.notify()

    def _take_up(self, target: str, node: str | None, spread: float | None) -> None:
        fact = AgentFact(target=target, node=node)
        new = _PolledTarget(target, node, random.random(), fact, self._clock())  # noqa: S311  # spreads load, keeps no secret
        now = time.monotonic()
        due = self._next_moment(new, now) if spread is None else now + new.phase * spread
        self._watched[target] = new
        heapq.heappush(self._due, (due, target, new))

    def _is_watched(self, one: _PolledTarget) -> bool:
        return self._watched.get(one.target) is one

    def _keep_schedule(self) -> None:
        """Look for targets now and then, and hand out each when it is due."""
        look_at = 0.0
        while not self._stopping:
            if time.monotonic() >= look_at:
                try:
                    self.update_targets()
                except Exception:  # a source of targets that fails leaves the ones we have
                    log.exception("finding agents")
                look_at = time.monotonic() + min(TARGET_REFRESH_SECONDS, self._settings.interval)
            self._lifetime.tick()
            with self._changed:
                self._hand_out(time.monotonic())
                next_at = min(look_at, self._due[0][0]) if self._due else look_at
                if not self._stopping:
                    self._changed.wait(min(TICK_SECONDS, max(0.0, next_at - time.monotonic())))

    def _hand_out(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            _, _, one = heapq.heappop(self._due)
            (self._prompt if self._is_prompt(one.fact) else self._slow).put(one)

    def _is_prompt(self, fact: AgentFact) -> bool:
        """Return whether it answered when it was last asked, and well within the limit."""
        latency = fact.latency_seconds
        return fact.failures == 0 and latency is not None and latency < self._settings.limit / 4

    def _work(self, lane: _Lane) -> None:
        while (one := lane.get()) is not None and not self._stopping:
            if not self._is_watched(one):
                continue
            fact = self._ask(one)
            with self._changed:
                if not self._is_watched(one):
                    continue
                one.fact, one.clock = fact, self._clock()
            self._tell(fact)
            with self._changed:
                if self._is_watched(one):
                    heapq.heappush(self._due, (self._next_moment(one, time.monotonic()), one.target, one))
                    self._changed.notify()

    def _ask(self, one: _PolledTarget) -> AgentFact:
        """Ask one agent and return what is known of it after that."""
        began, wall = time.monotonic(), time.time()
        before = _set_by(one.fact, self._clock() - one.clock)
        try:
            snapshot = decode_snapshot(self._fetch(one.target))
            node = one.node or self._own_name(one.target, snapshot.node)
            if snapshot.node != node:  # whatever is planned from it must not be done to the node that it says it is
                snapshot = msgspec.structs.replace(snapshot, node=node)
        except AgentError as error:
            return _failed(before, wall, str(error))
        except Exception as error:  # whatever an odd agent provokes, the others are still to be asked
            log.exception("asking the agent at %s", one.target)
            return _failed(before, wall, type(error).__name__)
        return AgentFact(
            target=one.target,
            node=node,
            snapshot=snapshot,
            received_at=time.time(),
            latency_seconds=time.monotonic() - began,
        )

    def _own_name(self, target: str, name: str) -> str:
        """Given what an agent calls its node, return that. Raise AgentError if another agent spoke for that node first.

        Which of the two lies cannot be known; but nobody takes a name away from one that has it.
        """
        with self._changed:
            other = next((each for each, taken in self._names.items() if taken == name and each != target), None)
            if other is not None:
                raise AgentError(f"says that it is on the node of {other}")
            self._names[target] = name
        return name

    def _tell(self, fact: AgentFact) -> None:
        try:
            self._on_answer(fact)
        except Exception:  # whoever listens must not stop us from asking
            log.exception("a listener failed")

    def _next_moment(self, one: _PolledTarget, now: float) -> float:
        """Return when it is asked next. One that has been silent for a while lets moments pass, up to a bound."""
        interval = self._settings.interval
        moments = min(max(1, one.fact.failures - 1), MAX_SKIPPED_INTERVALS)
        return now - (now - one.phase * interval) % interval + moments * interval


def decode_snapshot(body: bytes) -> NodeSnapshot:
    """Given what an agent sent, return the snapshot that it is. Raise AgentError if it is none."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise AgentError(f"sent no snapshot: {error}") from error
    except UnicodeError as error:  # its message quotes what was sent
        raise AgentError("sent no snapshot: the text is not UTF-8") from error


def _failed(fact: AgentFact, now: float, error: str) -> AgentFact:
    return msgspec.structs.replace(
        fact, silent_since=fact.silent_since or now, error=error[:MAX_ERROR_CHARS], failures=fact.failures + 1
    )


def _set_by(fact: AgentFact, seconds: float) -> AgentFact:
    """Return the fact as if the clock had always been as it is since it was set by so much: nobody is silent for that.

    A machine that is woken up or gets its time from elsewhere may jump by hours, and a daemon that was paused has asked
    nobody meanwhile.
    """
    if abs(seconds) < CLOCK_STEP_SECONDS:
        return fact
    return msgspec.structs.replace(
        fact,
        received_at=fact.received_at + seconds if fact.received_at is not None else None,
        silent_since=fact.silent_since + seconds if fact.silent_since is not None else None,
    )
