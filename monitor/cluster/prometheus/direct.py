"""Reads one agent directly while facts come from a metrics store: deletions are planned from this."""

from __future__ import annotations

import time
from collections.abc import Callable

from monitor.cluster.agents.client import AgentError, SnapshotClient
from monitor.cluster.agents.poller import Fetch, PollSettings, decode_snapshot
from monitor.facts.agents import AgentFact


class DirectAgentReader:
    """Reads snapshots of agents, from any number of threads. `agents` are the known ones."""

    def __init__(
        self, settings: PollSettings, agents: Callable[[], tuple[AgentFact, ...]], fetch: Fetch | None = None
    ) -> None:
        self._http = SnapshotClient(settings.limit, settings.token, settings.tls)
        self._fetch = fetch or self._http
        self._agents = agents

    def close(self) -> None:
        """Break off all requests."""
        self._http.close()

    def read(self, node: str) -> AgentFact | None:
        """Current fact of a node's agent, without a snapshot if it is silent; None if the node has no agent."""
        known = next((fact for fact in self._agents() if fact.node == node), None)
        if known is None:
            return None
        now = time.time()
        try:
            snapshot = decode_snapshot(self._fetch(known.target))
        except AgentError as error:
            return AgentFact(target=known.target, node=node, silent_since=now, error=str(error), failures=1)
        if snapshot.node != node:  # the address now belongs to another agent
            why = "is the agent of another node"
            return AgentFact(target=known.target, node=node, silent_since=now, error=why, failures=1)
        return AgentFact(target=known.target, node=node, snapshot=snapshot, received_at=time.time())
