"""Polls the agents: one schedule, a bounded crew of threads, and no agent that can hold up another.

An agent is asked again `interval` after it was last asked, spread over the interval so that a thousand of them do not
answer at once. One that does not answer costs one thread for at most the time limit, and is asked less often while it
stays silent. What it sends is bounded in time and size, whatever its pace.
"""

from __future__ import annotations

import heapq
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import requests
from requests.adapters import HTTPAdapter

from monitor.facts.agents import AgentFact
from monitor.facts.node import NodeSnapshot

log = logging.getLogger(__name__)
MAX_BODY = 64 * 1024 * 1024
CHUNK = 256 * 1024
SLOWEST = 8  # a silent agent is asked at least every so many intervals

Fetch = Callable[[str], bytes]
Targets = Mapping[str, str | None]  # "host:port" -> the node's name, where it is known


class AgentError(Exception):
    """An agent's answer could not be had, or not be believed. The text says why."""


@dataclass(frozen=True)
class PollSettings:
    """How agents are asked."""

    interval: float
    limit: float
    crew: int
    token: str | None = field(repr=False)


class HttpFetch:
    """Gets a snapshot over HTTP within a limit of time and size."""

    def __init__(self, settings: PollSettings) -> None:
        self._limit = settings.limit
        self._session = requests.Session()
        self._session.trust_env = False  # nodes are asked directly, never through a proxy
        self._session.mount("http://", HTTPAdapter(pool_connections=4096, pool_maxsize=1))
        if settings.token:
            self._session.headers["Authorization"] = f"Bearer {settings.token}"

    def __call__(self, target: str) -> bytes:
        """Given host:port, return the body of its snapshot. Raise AgentError."""
        deadline = time.monotonic() + self._limit
        try:
            with self._session.get(
                f"http://{target}/v1/snapshot", timeout=self._limit, stream=True, allow_redirects=False
            ) as reply:
                if reply.status_code != requests.codes.ok:
                    raise AgentError(f"answered {reply.status_code} {reply.reason}")
                return _read(reply, deadline)
        except requests.RequestException as error:
            raise AgentError(f"{type(error).__name__}: {error}") from error


def _read(reply: requests.Response, deadline: float) -> bytes:
    """Read a body that may be fed slowly or without end."""
    chunks, size = [], 0
    for chunk in reply.iter_content(CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BODY:
            raise AgentError(f"sent more than {MAX_BODY} bytes")
        if time.monotonic() > deadline:
            raise AgentError("sent too slowly")
    return b"".join(chunks)


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
        self._fetch = fetch or HttpFetch(settings)
        self._on_answer = on_answer
        self._decode = msgspec.json.Decoder(NodeSnapshot).decode
        self._facts: dict[str, AgentFact] = {}
        self._due: list[tuple[float, str]] = []  # a heap; a target is in it, or is being asked
        self._changed = threading.Condition()
        self._stopping = False

    def start(self) -> None:
        """Start the crew."""
        threading.Thread(target=self._follow_targets, name="agent-targets", daemon=True).start()
        for number in range(self._settings.crew):
            threading.Thread(target=self._work, name=f"agent-poll-{number}", daemon=True).start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def facts(self) -> tuple[AgentFact, ...]:
        """Return what is known of every agent, in a stable order."""
        with self._changed:
            return tuple(self._facts[target] for target in sorted(self._facts))

    def update_targets(self) -> None:
        """Take up new targets, at a random moment of the coming interval, and forget those that are gone."""
        targets = dict(self._targets())
        with self._changed:
            for target in self._facts.keys() - targets.keys():
                del self._facts[target]
            self._due = [entry for entry in self._due if entry[1] in targets]
            heapq.heapify(self._due)
            first = not self._facts
            for target, node in targets.items():
                if target not in self._facts:
                    self._facts[target] = AgentFact(target=target, node=node)
                    # The first ones are asked at once: somebody has just started the daemon and is waiting.
                    spread = min(1.0, self._settings.interval) if first else self._settings.interval
                    heapq.heappush(self._due, (time.monotonic() + random.uniform(0, spread), target))  # noqa: S311
            self._changed.notify_all()

    def poll(self, target: str) -> AgentFact | None:
        """Ask one agent now and return what is known of it after that; None if it is not a target any more."""
        began, wall = time.monotonic(), time.time()
        try:
            snapshot = self._decode(self._fetch(target))
        except (AgentError, msgspec.MsgspecError) as error:
            why = str(error)
        except Exception as error:  # whatever an odd agent provokes, the others are still to be asked
            log.exception("asking the agent at %s", target)
            why = f"{type(error).__name__}: {error}"
        else:
            latency = time.monotonic() - began
            return self._store(target, lambda fact: _answered(fact, snapshot, time.time(), latency))
        return self._store(target, lambda fact: _failed(fact, wall, why))

    def _store(self, target: str, change: Callable[[AgentFact], AgentFact]) -> AgentFact | None:
        with self._changed:
            if target not in self._facts:
                return None
            self._facts[target] = fact = change(self._facts[target])
        self._on_answer(fact)
        return fact

    def _follow_targets(self) -> None:
        while not self._stopping:
            try:
                self.update_targets()
            except Exception:  # a source of targets that fails leaves the ones we have
                log.exception("finding agents")
            with self._changed:
                if not self._stopping:
                    self._changed.wait(min(5.0, self._settings.interval))

    def _work(self) -> None:
        while (target := self._next()) is not None:
            fact = self.poll(target)
            if fact is not None:
                with self._changed:
                    heapq.heappush(self._due, (time.monotonic() + self._pause(fact), target))
                    self._changed.notify()

    def _next(self) -> str | None:
        """Wait for the next target that is due. Return None when stopping."""
        with self._changed:
            while not self._stopping:
                wait = self._due[0][0] - time.monotonic() if self._due else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self._due)[1]
                self._changed.wait(wait)
            return None

    def _pause(self, fact: AgentFact) -> float:
        """An agent that has been silent for a while is asked less often, up to a bound."""
        slower = min(max(1, fact.failures - 1), SLOWEST)
        return self._settings.interval * slower * random.uniform(0.95, 1.05)  # noqa: S311  # jitter, not a secret


def _answered(fact: AgentFact, snapshot: NodeSnapshot, now: float, latency: float) -> AgentFact:
    return AgentFact(
        target=fact.target,
        node=fact.node or snapshot.node,
        snapshot=snapshot,
        received_at=now,
        latency_seconds=latency,
    )


def _failed(fact: AgentFact, now: float, error: str) -> AgentFact:
    return msgspec.structs.replace(
        fact, silent_since=fact.silent_since or now, error=error[:500], failures=fact.failures + 1
    )
