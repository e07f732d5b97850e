"""agent-silent: a node has no responding agent, or collectors of its agent fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from monitor.base.text import shorten
from monitor.detect.base import (
    ANY_CAUSE,
    MAX_RAW_CHARS,
    Delay,
    Latency,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    whole_cluster,
)
from monitor.detect.labels import label_value
from monitor.detect.visibility import kubernetes_unavailable, resources_unavailable
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.node import CollectorFact
from monitor.facts.text import Text

CAUSES = ("node-down", "agent-down", "collector-hung", "collector-failing")
ALL_AGENTS = "agents"  # the label if there is no agent at all


@dataclass(frozen=True)
class Limits:
    """How long an agent may be silent, and how long one of its collectors may fail or hang."""

    silent_after: Seconds = 120.0
    collector_after: Seconds = 300.0


@dataclass(frozen=True)
class _AgentEvaluation:
    """One evaluation of all agents; `before` and `after` map problems to their start."""

    context: RuleContext
    before: dict[str, float]
    after: dict[str, float]

    def since(self, subject: str) -> float:
        """Start of a problem: when it was first seen, never in the future after the clock was set back."""
        now = self.context.now
        return self.after.setdefault(subject, min(now, self.before.get(subject, now)))


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Agents that do not respond, nodes without an agent, and failing collectors."""
    evaluation = _AgentEvaluation(context, memory if isinstance(memory, dict) else {}, {})
    # Agents are discovered through their pods.
    undiscovered = not kubernetes_unavailable(context) and resources_unavailable(context, "pods", "nodes")
    if undiscovered:
        return RuleResult(memory=evaluation.before, blind=(Scope(labels={}),))
    agents = context.facts.agent_of_node
    findings = [
        *_silent(evaluation, agents.items()),
        *_missing(evaluation, agents),
        *_collectors(evaluation, agents.items()),
    ]
    blind = {node for node, agent in agents.items() if agent.silent_since is not None or agent.snapshot is None}
    blind |= _nodes_without_agent(context, agents)
    scopes = tuple(Scope(labels={"node": label_value(node)}) for node in sorted(blind))
    return RuleResult(findings=tuple(findings), memory=evaluation.after, blind=scopes)


def _silent(evaluation: _AgentEvaluation, agents: Iterable[tuple[str, AgentFact]]) -> Iterator[Finding]:
    """Known agents that have not responded for too long."""
    now = evaluation.context.now
    for node, agent in agents:
        last = agent.received_at if agent.received_at is not None else agent.silent_since
        limits: Limits = evaluation.context.limits.of({"node": node})
        if last is not None and now - last > limits.silent_after:
            yield _silent_finding(evaluation.context, node, agent.silent_since or last, agent)


def _nodes_without_agent(context: RuleContext, agents: dict[str, AgentFact]) -> set[str]:
    """Kubernetes nodes with GPUs but without an agent."""
    resource = context.facts.resource
    nodes = (node for node in context.facts.nodes if node.deletion_at is None and node.name not in agents)
    return {node.name for node in nodes if node.capacity.get(resource) or node.allocatable.get(resource)}


def _missing(evaluation: _AgentEvaluation, agents: dict[str, AgentFact]) -> Iterator[Finding]:
    """Nodes without an agent; one finding if there is none at all."""
    uncovered = _nodes_without_agent(evaluation.context, agents)
    if not agents and uncovered:
        since = evaluation.since(ALL_AGENTS)
        if evaluation.context.now - since > evaluation.context.limits.default.silent_after:
            yield _no_agents(len(uncovered), since, evaluation.context.now)
        return
    for node in sorted(uncovered):
        limits: Limits = evaluation.context.limits.of({"node": node})
        since = evaluation.since(node)
        if evaluation.context.now - since > limits.silent_after:
            yield _silent_finding(evaluation.context, node, since, None)


def _silent_finding(context: RuleContext, node: str, since: float, agent: AgentFact | None) -> Finding:
    known = context.facts.node_by_name.get(node)
    cause = "node-down" if known is not None and known.ready is not True else "agent-down"
    key = "agent-silent.none" if agent is None and cause == "agent-down" else f"agent-silent.{cause}"
    message = shorten(agent.error or "", MAX_RAW_CHARS) if agent else ""
    return Finding(
        rule="agent-silent",
        severity=Severity.WARNING,
        cause=cause,
        labels={"node": label_value(node)},
        headline=Text(key=key, values={"node": node, "seconds": max(0.0, context.now - since)}),
        evidence=(Text(key="agent-silent.error", values={"target": agent.target, "error": message}),)
        if agent and message
        else (),
        advice=(Text(key=f"agent-silent.{cause}.advice", values={"node": node}),),
        since=since,
        raw=message or None,
    )


def _no_agents(nodes: int, since: float, now: float) -> Finding:
    return Finding(
        rule="agent-silent",
        severity=Severity.WARNING,
        cause="agent-down",
        labels={"service": ALL_AGENTS},
        headline=Text(key="agent-silent.nowhere", values={"count": nodes, "seconds": max(0.0, now - since)}),
        advice=(Text(key="agent-silent.nowhere.advice", values={}),),
        since=since,
    )


def _collectors(evaluation: _AgentEvaluation, agents: Iterable[tuple[str, AgentFact]]) -> Iterator[Finding]:
    """Collectors of responding agents that have hung or failed for too long."""
    for node, agent in agents:
        if agent.snapshot is None or agent.silent_since is not None or agent.received_at is None:
            continue
        age = max(0.0, evaluation.context.now - agent.received_at)
        for fact in agent.snapshot.collectors:
            cause, seconds = _collector_problem(evaluation, node, fact, agent.snapshot.at)
            labels = {"node": label_value(node), "service": label_value(fact.name)}
            limits: Limits = evaluation.context.limits.of(labels) if cause else evaluation.context.limits.default
            if cause and seconds + age > limits.collector_after:
                yield _collector_finding(labels, fact, cause, seconds + age, evaluation.context.now)


def _collector_problem(
    evaluation: _AgentEvaluation, node: str, fact: CollectorFact, at: float
) -> tuple[str | None, float]:
    """Problem of a collector and its duration at `at`, both in the node's clock.

    A collector that runs every ten minutes and failed once last succeeded ten minutes ago; the failure counts only from
    the run that failed.
    """
    if fact.hung_since is not None:
        return "collector-hung", at - fact.hung_since
    if fact.outcome != "failed":
        return None, 0.0
    if fact.succeeded_at is not None:
        return "collector-failing", at - fact.succeeded_at - fact.interval_seconds
    return "collector-failing", evaluation.context.now - evaluation.since(f"{node}|{fact.name}")


def _collector_finding(labels: dict[str, str], fact: CollectorFact, cause: str, seconds: float, now: float) -> Finding:
    values = {"node": labels["node"], "collector": labels["service"]}
    message = shorten(fact.message or "", MAX_RAW_CHARS)
    return Finding(
        rule="agent-silent",
        severity=Severity.WARNING,
        cause=cause,
        labels=labels,
        headline=Text(key=f"agent-silent.{cause}", values={**values, "seconds": seconds}),
        evidence=(Text(key="agent-silent.collector-says", values={"error": message}),) if message else (),
        advice=(Text(key=f"agent-silent.{cause}.advice", values=dict(values)),),
        since=now - seconds,
        raw=message or None,
    )


RULE = Rule(
    "agent-silent",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    latency={
        "agent-down": Latency("silent_after", resolve_delay=Delay.AGENT_BACKOFF),
        "collector-failing": Latency("collector_after", Delay.FAILED_RUN),
        ANY_CAUSE: Latency("collector_after"),
    },
)
