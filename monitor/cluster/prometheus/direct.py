"""One agent asked directly, where all others are known from a metrics store: what is deleted is planned from this."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from monitor.cluster.agents.client import AgentError, HttpFetch
from monitor.cluster.agents.poller import Fetch, PollSettings
from monitor.facts.agents import AgentFact
from monitor.facts.node import NodeSnapshot


class DirectAgentReader:
    """Asks agents, from any number of threads. `agents` are those that are known."""

    def __init__(
        self, settings: PollSettings, agents: Callable[[], tuple[AgentFact, ...]], fetch: Fetch | None = None
    ) -> None:
        self._http = HttpFetch(settings.limit, settings.token, settings.tls)
        self._fetch = fetch or self._http
        self._agents = agents
        self._decode = msgspec.json.Decoder(NodeSnapshot).decode

    def close(self) -> None:
        """Break off whatever is being asked."""
        self._http.close()

    def ask(self, node: str) -> AgentFact | None:
        """Given a node, return what its agent says now; None if it has none. One that is silent has no snapshot."""
        known = next((fact for fact in self._agents() if fact.node == node), None)
        if known is None:
            return None
        now = time.time()
        try:
            snapshot = self._decode(self._fetch(known.target))
        except AgentError as error:
            return AgentFact(target=known.target, node=node, silent_since=now, error=str(error), failures=1)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return AgentFact(target=known.target, node=node, silent_since=now, error="sent no snapshot", failures=1)
        if snapshot.node != node:  # the address has become another's
            said = "is the agent of another node"
            return AgentFact(target=known.target, node=node, silent_since=now, error=said, failures=1)
        return AgentFact(target=known.target, node=node, snapshot=snapshot, received_at=time.time())
