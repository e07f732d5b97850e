"""What the daemon knows of each agent: its last word, and since when it is silent."""

from __future__ import annotations

from monitor.facts.base import Fact
from monitor.facts.node import NodeSnapshot


class AgentFact(Fact, frozen=True, kw_only=True):
    """One agent. `snapshot` is the last one received, however old: `received_at` says when that was.

    `silent_since` is when the first of the failed attempts after the last answer was made; None while it answers.
    `node` is what Kubernetes or the agent itself calls the node; None until one of them has spoken.
    """

    target: str
    node: str | None = None
    snapshot: NodeSnapshot | None = None
    received_at: float | None = None
    silent_since: float | None = None
    error: str | None = None
    failures: int = 0
    latency_seconds: float | None = None
