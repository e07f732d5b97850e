"""agent-silent: a node has no responding agent, or collectors of its agent fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from monitor.detect.base import NOTHING, Delay, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind, lasting
from monitor.detect.findings import make_finding, shorten_raw
from monitor.detect.labels import label_value
from monitor.detect.subjects import NodeReport, NodeSubject
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding, Scope
from monitor.facts.gpu_sharing import has_gpus
from monitor.facts.node import CollectorFact
from monitor.facts.text import Text

CAUSES = ("node-down", "agent-down", "collector-hung", "collector-failing")
ALL_AGENTS = "agents"  # the label if there is no agent at all
NO_AGENT = "agent-silent.none"
RECHECK_SECONDS = 30.0  # for an agent that is not polled
EVERYTHING = (Scope(labels={}),)


@dataclass(frozen=True)
class Limits:
    """How long an agent may be silent, and how long one of its collectors may fail or hang."""

    silent_after: Seconds = 120.0
    collector_after: Seconds = 300.0


def evaluate(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A node whose agent is missing or does not respond, or whose collectors fail.

    Without a current answer, earlier findings are held. The memory holds since when there has been no agent, or by
    collector the start of a failure that the agent does not know.
    """
    limits: Limits = context.limits.of({"node": node.name})
    if node.agent is None:
        return _missing(node, context, limits, memory, now)
    silent = _silent(node, node.agent, limits, now)
    if node.current is None:
        return replace(silent, memory=memory, blind=EVERYTHING)
    failing = _failing_collectors(node.current, context, memory, now)
    times = [at for at in (silent.next_at, failing.next_at) if at is not None]
    return replace(failing, findings=silent.findings + failing.findings, next_at=min(times, default=None))


def _missing(node: NodeSubject, context: RuleContext, limits: Limits, memory: Any, now: float) -> RuleResult:
    """A Kubernetes node with GPUs but without an agent."""
    fact, resource = node.fact, context.facts.resource
    if fact is None or fact.deletion_at or not has_gpus(fact, resource):
        return NOTHING
    found = lasting("no-agent", limits.silent_after, memory, now, lambda since: _silent_finding(node, since))
    return replace(found, blind=EVERYTHING)


def _silent(node: NodeSubject, agent: AgentFact, limits: Limits, now: float) -> RuleResult:
    """An agent that has not responded for too long, or has not been polled."""
    last = agent.received_at if agent.received_at is not None else agent.silent_since
    if last is None:
        return NOTHING
    if now < last + limits.silent_after:
        return RuleResult(next_at=last + limits.silent_after)
    found = (_silent_finding(node, agent.silent_since or last),)
    return RuleResult(found, next_at=now + RECHECK_SECONDS if agent.silent_since is None else None)


def _silent_finding(node: NodeSubject, since: float) -> Finding:
    cause = "node-down" if node.fact is not None and node.fact.ready is not True else "agent-down"
    key = NO_AGENT if node.agent is None and cause == "agent-down" else f"agent-silent.{cause}"
    message = shorten_raw(node.agent.error) if node.agent else ""
    error = {"target": node.agent.target, "error": message} if node.agent and message else None
    return make_finding(
        "agent-silent", cause, {"node": label_value(node.name)}, {"node": node.name}, key=key,
        evidence=(Text("agent-silent.error", {**error}),) if error else (),
        advice_key=f"agent-silent.{cause}.advice", since=since, raw=message or None,
    )  # fmt: skip


def _failing_collectors(report: NodeReport, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """Collectors that have hung or failed for too long."""
    findings, due, starts = [], [], {}
    for fact in report.snapshot.collectors:
        cause = "collector-hung" if fact.hung_since is not None else "collector-failing"
        since = _failing_since(fact)
        if since is not None:
            since += report.skew
        elif fact.outcome == "failed":
            since = starts[fact.name] = _remembered(memory, fact.name, now)
        else:
            continue
        labels = {"node": label_value(report.node), "service": label_value(fact.name)}
        limits: Limits = context.limits.of(labels)
        if now < since + limits.collector_after:
            due.append(since + limits.collector_after)
        else:
            findings.append(_collector_finding(labels, fact, cause, since))
    return RuleResult(tuple(findings), starts or None, next_at=min(due, default=None))


def _remembered(memory: Any, collector: str, now: float) -> float:
    """When a collector was first seen failing, never in the future after the clock was set back."""
    at = memory.get(collector) if isinstance(memory, dict) else None
    return min(now, at) if isinstance(at, int | float) else now


def _failing_since(fact: CollectorFact) -> float | None:
    """Start of a collector's problem in the node's clock; None if it has none or the agent does not know.

    A collector that runs every ten minutes and failed once last succeeded ten minutes ago; the failure counts only from
    the run that failed.
    """
    if fact.hung_since is not None or fact.outcome != "failed" or fact.succeeded_at is None:
        return fact.hung_since
    return fact.succeeded_at + fact.interval_seconds


def _collector_finding(labels: dict[str, str], fact: CollectorFact, cause: str, since: float) -> Finding:
    values = {"node": labels["node"], "collector": labels["service"]}
    message = shorten_raw(fact.message)
    says = (Text("agent-silent.collector-says", {"error": message}),) if message else ()
    return make_finding("agent-silent", cause, labels, values, evidence=says, since=since, raw=message or None)


def correlate(findings: Sequence[Finding], context: RuleContext) -> Sequence[Finding]:
    """One finding instead of one for each node if there is no agent at all."""
    missing = [finding for finding in findings if finding.headline.key == NO_AGENT]
    if context.facts.agents or not missing:
        return findings
    nowhere = make_finding(
        "agent-silent", "agent-down", {"service": ALL_AGENTS}, {"count": len(missing)},
        key="agent-silent.nowhere", advice_values={},
        since=min(finding.since or context.now for finding in missing), held=all(finding.held for finding in missing),
    )  # fmt: skip
    return [nowhere, *(finding for finding in findings if finding.headline.key != NO_AGENT)]


LATENCY = {
    "agent-down": Latency("silent_after", resolve_delay=Delay.AGENT_BACKOFF),
    "collector-failing": Latency("collector_after", Delay.FAILED_RUN),
    "collector-hung": Latency("collector_after"),
    "node-down": Latency("collector_after"),
}
# Agents are discovered through their pods.
RULE = Rule(
    "agent-silent", Limits, CAUSES, evaluate, SubjectKind.NODE,
    uses=("agent", "collectors", "node"), kube=("pods", "nodes"), without_kubernetes=True, correlate=correlate,
    suppressed_by=("node-down",), latency=LATENCY,
)  # fmt: skip
