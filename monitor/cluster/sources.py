"""What of the world can be seen, and what is missing: in words, from how Kubernetes and the agents fare. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.kube import SourceFact


def kube_sources(sources: Sequence[SourceFact] | None, why_none: str | None = None) -> tuple[SourceView, ...]:
    """Given how each kind of object is followed, or None without Kubernetes, return what is seen of it.

    A kind that the cluster does not have is nothing that is missing.
    """
    if sources is None:
        return (SourceView(name="kubernetes", ok=False, why=why_none or "not configured"),)
    views = []
    for source in sources:
        if source.state == "absent":
            continue
        ok = source.state == "synced"
        why = None if ok else "; ".join(word for word in (source.state, source.last_error, source.without) if word)
        views.append(SourceView(name=source.resource, ok=ok, why=why, since=source.stale_since))
    return tuple(views)


def agent_sources(agents: Iterable[AgentFact], store: SourceView | None = None) -> tuple[SourceView, ...]:
    """Given the agents, return whether there are any, and which are silent.

    `store` is the one that they are known from, where they are not asked themselves. If that is out of sight, nothing
    can be said of the agents.
    """
    if store is not None:
        return (store, *agent_sources(agents)) if store.ok else (store,)
    agents = list(agents)
    if not agents:
        return (SourceView(name="agents", ok=False, why="no agent was found; start one on each node"),)
    silent = [agent for agent in agents if agent.silent_since is not None]
    if not silent:
        heard = any(agent.received_at is not None for agent in agents)
        return (SourceView(name="agents", ok=heard, why=None if heard else "starting"),)
    named = ", ".join(agent.node or agent.target for agent in silent[:3])
    more = f" and {len(silent) - 3} more" if len(silent) > 3 else ""
    since = min(agent.silent_since or 0.0 for agent in silent)
    return (
        SourceView(name="agents", ok=False, why=f"{len(silent)} of {len(agents)} silent: {named}{more}", since=since),
    )
