"""Which sources can be observed now; a missing source is not evidence."""

from __future__ import annotations

from monitor.detect.base import RuleContext
from monitor.facts.agents import AgentFact

MIN_CLOCK_SKEW_SECONDS = 2.0  # smaller differences are network latency


def kubernetes_unavailable(context: RuleContext) -> bool:
    """Whether the daemon runs without Kubernetes."""
    return resources_unavailable(context)


def resources_unavailable(context: RuleContext, *resources: str) -> bool:
    """Whether one of these Kubernetes resources cannot be listed now."""
    return any(not source.ok and source.name in ("kubernetes", *resources) for source in context.facts.sources)


def resources_lost(context: RuleContext, *resources: str) -> bool:
    """Whether one of these resources cannot be listed now although Kubernetes is connected."""
    return not kubernetes_unavailable(context) and resources_unavailable(context, *resources)


def clock_skew(agent: AgentFact | None) -> float:
    """Seconds to add to the times of an agent's node to get ours."""
    if agent is None or agent.snapshot is None or agent.received_at is None:
        return 0.0
    skew = agent.received_at - agent.snapshot.at
    return skew if abs(skew) > MIN_CLOCK_SKEW_SECONDS else 0.0
