"""Agents as the daemon sees them: the last snapshot, and since when the agent has been silent."""

from __future__ import annotations

from monitor.facts.base import Fact
from monitor.facts.node import NodeSnapshot


class AgentFact(Fact, frozen=True, kw_only=True):
    """One agent. `snapshot` is the last one received, however old; `received_at` is when.

    `silent_since` is the first failed poll after the last success; None while the agent answers. `node` is its name
    according to Kubernetes or the agent; None until either is known.
    """

    target: str
    node: str | None = None
    snapshot: NodeSnapshot | None = None
    received_at: float | None = None
    silent_since: float | None = None
    error: str | None = None
    failures: int = 0
    latency_seconds: float | None = None
