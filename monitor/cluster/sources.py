"""Health of the sources of the view: each watched Kubernetes resource, and the agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.kube import SourceFact

MAX_NAMED = 3  # silent agents that are named


def kube_sources(sources: Sequence[SourceFact] | None, unavailable_reason: str | None = None) -> tuple[SourceView, ...]:
    """Health of each watched resource, or of Kubernetes as a whole if `sources` is None.

    A resource that the cluster does not serve is left out.
    """
    if sources is None:
        return (SourceView(name="kubernetes", ok=False, why=unavailable_reason or "not configured"),)
    views = []
    for source in sources:
        if source.state == "absent":
            continue
        ok = source.state == "synced"
        why = None if ok else "; ".join(part for part in (source.state, source.last_error, source.without) if part)
        views.append(SourceView(name=source.resource, ok=ok, why=why, since=source.stale_since))
    return tuple(views)


def agent_sources(agents: Iterable[AgentFact]) -> tuple[SourceView, ...]:
    """Health of the agents as one source."""
    agents = list(agents)
    if not agents:
        return (SourceView(name="agents", ok=False, why="no agent was found; start one on each node"),)
    silent = [agent for agent in agents if agent.silent_since is not None]
    if not silent:
        heard = any(agent.received_at is not None for agent in agents)
        return (SourceView(name="agents", ok=heard, why=None if heard else "starting"),)
    names = ", ".join(agent.node or agent.target for agent in silent[:MAX_NAMED])
    more = f" and {len(silent) - MAX_NAMED} more" if len(silent) > MAX_NAMED else ""
    since = min(agent.silent_since or 0.0 for agent in silent)
    return (
        SourceView(name="agents", ok=False, why=f"{len(silent)} of {len(agents)} silent: {names}{more}", since=since),
    )
