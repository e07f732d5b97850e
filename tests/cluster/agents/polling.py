"""An AgentPoller that runs during a test, and helpers to wait for its facts."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from monitor.cluster.agents.poller import AgentPoller, PollSettings
from monitor.facts.agents import AgentFact
from tests.support import wait_until
from tests.support.fake_agents import FakeAgent

SOON = 30.0


def settings(interval: float = 0.1, limit: float = 0.5, crew: int = 2, token: str | None = None) -> PollSettings:
    return PollSettings(interval=interval, limit=limit, crew=crew, token=token)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("agent-")]


@contextlib.contextmanager
def polling(poller: AgentPoller) -> Iterator[AgentPoller]:
    poller.start()
    try:
        yield poller
    finally:
        poller.stop()
        wait_until(lambda: not threads(), SOON, "every thread has ended")


def poll(agent: FakeAgent, interval: float = 0.1, limit: float = 0.5) -> AgentPoller:
    return AgentPoller(settings(interval, limit), lambda: {agent.target: None})


def only(poller: AgentPoller) -> AgentFact:
    (fact,) = poller.facts()
    return fact


def until(poller: AgentPoller, holds: Callable[[AgentFact], object], what: str) -> AgentFact:
    wait_until(lambda: any(holds(fact) for fact in poller.facts()), SOON, what)
    return only(poller)
