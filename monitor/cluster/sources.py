"""Health of the sources of the view: each watched Kubernetes resource, and the agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.kube import SourceFact
from monitor.facts.text import Text, Value

MAX_NAMED = 3  # silent agents that are named


def kube_sources(sources: Sequence[SourceFact] | None, unavailable_reason: str | None = None) -> tuple[SourceView, ...]:
    """Health of each watched resource, or of Kubernetes as a whole if `sources` is None.

    A resource that the cluster does not serve is left out.
    """
    if sources is None:
        text = None if unavailable_reason else Text("source.not-configured")
        return (SourceView(name="kubernetes", ok=False, why=unavailable_reason or "not configured", text=text),)
    views = []
    for source in sources:
        if source.state == "absent":
            continue
        ok = source.state == "synced"
        details = "; ".join(part for part in (source.last_error, source.without) if part)
        why = None if ok else "; ".join(part for part in (source.state, details) if part)
        key = "source.resource-with-details" if details else "source.resource"
        text = None if ok else Text(key, {"state": source.state, "details": details})
        views.append(SourceView(name=source.resource, ok=ok, why=why, since=source.stale_since, text=text))
    return tuple(views)


def agent_sources(agents: Iterable[AgentFact]) -> tuple[SourceView, ...]:
    """Health of the agents as one source."""
    agents = list(agents)
    if not agents:
        why = "no agent was found; start one on each node"
        return (SourceView(name="agents", ok=False, why=why, text=Text("source.no-agent")),)
    silent = [agent for agent in agents if agent.silent_since is not None]
    if not silent:
        heard = any(agent.received_at is not None for agent in agents)
        if heard:
            return (SourceView(name="agents", ok=True),)
        return (
            SourceView(name="agents", ok=False, why="starting", text=Text("source.resource", {"state": "starting"})),
        )
    names = ", ".join(agent.node or agent.target for agent in silent[:MAX_NAMED])
    unnamed = max(0, len(silent) - MAX_NAMED)
    more = f" and {unnamed} more" if unnamed else ""
    values: dict[str, Value] = {"count": len(silent), "total": len(agents), "names": names, "more": unnamed}
    return (
        SourceView(
            name="agents",
            ok=False,
            why=f"{len(silent)} of {len(agents)} silent: {names}{more}",
            since=min(agent.silent_since or 0.0 for agent in silent),
            text=Text("source.agents-silent-more" if more else "source.agents-silent", values),
        ),
    )
