"""monitor-blind: the monitor cannot observe part of the cluster, evaluate its rules or save its state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from monitor.base.state_problems import StateProblem, StateProblemKind
from monitor.base.text import shorten
from monitor.detect.base import ANY_CAUSE, MAX_RAW_CHARS, Delay, Latency, NoLimits, RuleMetadata
from monitor.detect.bounds import bounded_findings
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

CAUSES = ("api-server", "agents", "detection", "state", "state-damaged", "state-newer", "state-size", "source")
STATE_CAUSES = {
    StateProblemKind.UNWRITABLE: "state",
    StateProblemKind.DAMAGED: "state-damaged",
    StateProblemKind.NEWER: "state-newer",
}
STARTUP_GRACE_SECONDS = 60.0
BLIND_AFTER_SECONDS = 60.0
AGENT_STALE_SECONDS = 120.0  # an agent that has not been polled for this long counts as silent
MAX_REASON_CHARS = 300
KUBERNETES_DOWN = "service-down|service=kubernetes"
CORE_SOURCES = ("pods", "nodes")
OTHER_SOURCES = ("kubernetes", "agents")  # not watched; "kubernetes": runs without it on purpose
UNKNOWN = "?"

RULE = RuleMetadata(
    "monitor-blind",
    NoLimits,
    CAUSES,
    latency={ANY_CAUSE: Latency(BLIND_AFTER_SECONDS, Delay.FIRST_SEEN, resolve_delay=Delay.AGENT_BACKOFF)},
)


@dataclass(frozen=True)
class MonitorState:
    """What the monitor observes. `looked_at` is the last evaluation; `state` are problems of the state directory.

    `state_excess` is the size of the state directory and its limit, if it still exceeds the limit after pruning.
    """

    started_at: float
    looked_at: float | None = None
    sources: tuple[SourceView, ...] = ()
    agents: Sequence[AgentFact] = ()
    state: tuple[StateProblem, ...] = ()
    state_excess: str | None = None


def with_monitor_findings(findings: Iterable[Finding], state: MonitorState, now: float) -> tuple[Finding, ...]:
    """`findings` and those about the monitor itself.

    The loss of all agents explains each silent agent; a Kubernetes outage explains why the API is not visible.
    """
    findings = tuple(findings)
    about_monitor = tuple(_state(state.state, now))  # known for certain right after the start
    about_monitor += tuple(_evaluate(state, now)) if now - state.started_at >= STARTUP_GRACE_SECONDS else ()
    keys = {finding.key for finding in findings}
    all_silent = next((finding.key for finding in about_monitor if finding.cause == "agents"), None)
    explained = [
        msgspec.structs.replace(finding, explained_by=KUBERNETES_DOWN)
        if finding.cause == "api-server" and KUBERNETES_DOWN in keys
        else finding
        for finding in about_monitor
    ]
    return (*(_explained(finding, all_silent) for finding in findings), *bounded_findings(explained))


def _explained(finding: Finding, all_silent: str | None) -> Finding:
    if all_silent is None or finding.rule != "agent-silent" or finding.explained_by is not None:
        return finding
    return msgspec.structs.replace(finding, explained_by=all_silent)


def _state(problems: tuple[StateProblem, ...], now: float) -> Iterator[Finding]:
    """One finding for each kind of problem with the state directory."""
    for kind, cause in STATE_CAUSES.items():
        alike = [problem for problem in problems if problem.kind is kind]
        if alike:
            names = ", ".join(dict.fromkeys(problem.path.rpartition("/")[2] for problem in alike))
            why = "; ".join(f"{problem.path}: {problem.why}" for problem in alike)
            yield _finding(cause, names, why, None, now, cause)


def _evaluate(state: MonitorState, now: float) -> Iterator[Finding]:
    if state.state_excess is not None:
        yield _finding("state-size", "state-size", state.state_excess, None, now)
    yield from _kubernetes(state, now)
    yield from _agents(state.agents, now)
    evaluated_at = state.started_at if state.looked_at is None else state.looked_at
    if now - evaluated_at >= BLIND_AFTER_SECONDS:
        yield _finding("detection", "detection", "the rules have not run", evaluated_at, now)


def _kubernetes(state: MonitorState, now: float) -> Iterator[Finding]:
    """Lost Kubernetes sources: one finding if pods or nodes are among them, else one each."""
    lost = [source for source in state.sources if not source.ok and source.name not in OTHER_SOURCES]
    lost = [source for source in lost if now - _lost_since(source, state) >= BLIND_AFTER_SECONDS]
    if any(source.name in CORE_SOURCES for source in lost):
        why = "; ".join(dict.fromkeys(source.why or UNKNOWN for source in lost))
        names = ", ".join(source.name for source in lost)
        since = min(_lost_since(source, state) for source in lost)
        yield _finding("api-server", names, why, since, now, "api-server")
        return
    for source in lost:
        yield _finding("source", source.name, source.why or UNKNOWN, _lost_since(source, state), now)


def _lost_since(source: SourceView, state: MonitorState) -> float:
    return state.started_at if source.since is None else source.since


def _agents(agents: Sequence[AgentFact], now: float) -> Iterator[Finding]:
    """The loss of all agents; agent-silent reports a single one."""
    if len(agents) < 2:
        return
    since = [_silent_since(agent, now) for agent in agents]
    silent = [at for at in since if at is not None]
    if len(silent) == len(since) and now - max(silent) >= BLIND_AFTER_SECONDS:
        why = "; ".join(dict.fromkeys(agent.error for agent in agents if agent.error)) or UNKNOWN
        yield _finding("agents", f"{len(agents)} agents", why, max(silent), now, "agents")


def _silent_since(agent: AgentFact, now: float) -> float | None:
    if agent.silent_since is not None:
        return agent.silent_since
    received_at = agent.received_at
    return received_at if received_at is not None and now - received_at > AGENT_STALE_SECONDS else None


def _finding(cause: str, source: str, why: str, since: float | None, now: float, service: str | None = None) -> Finding:
    values: dict[str, Value] = {"source": source, "why": shorten(why, MAX_REASON_CHARS)}
    values |= {"seconds": max(0.0, now - since)} if since is not None else {}
    return Finding(
        rule=RULE.rule,
        severity=Severity.WARNING if cause in ("source", "state-size") else Severity.CRITICAL,
        cause=cause,
        labels={"service": f"monitor/{service or source}"},
        headline=Text(key=f"{RULE.rule}.{cause}", values=values),
        advice=(Text(key=f"{RULE.rule}.{cause}.advice", values={"source": source}),),
        since=since,
        raw=shorten(why, MAX_RAW_CHARS),
    )
