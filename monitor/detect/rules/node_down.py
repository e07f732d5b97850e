"""node-down: a node is not ready, under disk or memory pressure, or flapping."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import AGE, ANY_CAUSE, NOTHING, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding, shorten_raw
from monitor.detect.labels import label_value
from monitor.detect.subjects import NodeSubject
from monitor.explain.fit import total_in_words
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import ConditionFact, NodeFact
from monitor.facts.text import Text

CAUSES = ("kubelet-silent", "disk-pressure", "memory-pressure", "network", "flapping")
PRESSURES = {"DiskPressure": "disk-pressure", "MemoryPressure": "memory-pressure", "PIDPressure": "unknown"}
NETWORK_PHRASES = ("network plugin", "networkplugin", "cni ", "network is not ready", "network not ready")
MAX_CHANGES = 20  # remembered per node


@dataclass(frozen=True)
class Limits:
    """A node may take `joining` to become ready. `flaps` changes within `window` are flapping."""

    after: Seconds = 0.0
    joining: Seconds = 300.0
    flaps: int = 3
    window: Seconds = 1800.0


def evaluate(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """An unreliable node. The memory holds its recent changes of readiness."""
    fact = node.fact
    if fact is None:
        return NOTHING
    limits: Limits = context.limits.of({"node": node.name})
    changes = _changes(fact, memory, limits, now)
    problem = _problem(fact, changes, limits, now)
    findings = () if problem is None else (_finding(context, fact, problem, node.agent),)
    next_at = min((at for at in _limits_end(fact, changes, limits) if at > now), default=None)
    return RuleResult(findings, changes, next_at=next_at)


def _limits_end(node: NodeFact, changes: dict[str, Any] | None, limits: Limits) -> list[float]:
    """Times at which a limit elapses or a change of readiness leaves the window."""
    starts = [(node.created_at, limits.joining), (node.ready_since, limits.after)]
    starts += [(condition.since, limits.after) for condition in node.conditions]
    starts += [(at, limits.window) for at in (*changes["changes"], changes["since"])] if changes else []
    return [since + limit for since, limit in starts if since is not None]


@dataclass(frozen=True)
class _NodeProblem:
    """What is wrong with a node. `down`: no pod can run there now."""

    cause: str
    since: float | None
    raw: str | None = None
    down: bool = False
    changes: int = 0


def _changes(node: NodeFact, memory: Any, limits: Limits, now: float) -> dict[str, Any] | None:
    """Changes of readiness within the window; None if there are none.

    A change from unknown to not ready does not count: every reboot has one.
    """
    ready, since = node.ready is True, node.ready_since
    before = memory if isinstance(memory, dict) and memory.keys() == {"ready", "since", "changes"} else None
    if since is None:
        return before
    if before is not None:
        times, missed = before["changes"], 2 if ready else 0  # down and up again between two evaluations
        if since != before["since"]:
            times = [*times, *[since] * (1 if ready != before["ready"] else missed)]
    else:
        joined = node.created_at is not None and since - node.created_at < limits.joining
        times = [] if joined else [since]
    times = [at for at in times if at + limits.window > now][-MAX_CHANGES:]
    return {"ready": ready, "since": since, "changes": times} if times or since + limits.window > now else None


def _problem(node: NodeFact, changes: dict[str, Any] | None, limits: Limits, now: float) -> _NodeProblem | None:
    """The worst problem of a node."""
    down = node.ready is not True and _counts(node, limits, now)
    times: list[float] = changes["changes"] if changes else []
    if len(times) >= limits.flaps:
        return _NodeProblem("flapping", times[0], _ready_message(node), down, len(times))
    if down:
        return _NodeProblem(_why_down(node), node.ready_since, _ready_message(node), down=True)
    for condition in node.conditions:
        cause = PRESSURES.get(condition.type)
        if cause and condition.status and _lasts(condition.since, limits.after, now):
            return _NodeProblem(cause, condition.since, _condition_message(condition))
    network = _network_unavailable(node)
    if network is not None and _counts(node, limits, now):
        return _NodeProblem("network", None, _condition_message(network))
    return None


def _counts(node: NodeFact, limits: Limits, now: float) -> bool:
    """Whether a node that is not ready should be; a joining or leaving one should not."""
    created = node.created_at
    joining = created is not None and created - limits.joining < now < created + limits.joining
    return not joining and node.deletion_at is None and _lasts(node.ready_since, limits.after, now)


def _lasts(since: float | None, limit: float, now: float) -> bool:
    return since is None or now >= since + limit


def _why_down(node: NodeFact) -> str:
    if node.ready is None:
        return "kubelet-silent"
    message = (_ready_message(node) or "").lower()
    if _network_unavailable(node) is not None or any(phrase in message for phrase in NETWORK_PHRASES):
        return "network"
    return next((PRESSURES[c.type] for c in node.conditions if c.status and c.type in PRESSURES), "unknown")


def _network_unavailable(node: NodeFact) -> ConditionFact | None:
    return next((c for c in node.conditions if c.type == "NetworkUnavailable" and c.status), None)


def _ready_message(node: NodeFact) -> str | None:
    return next((_condition_message(c) for c in node.conditions if c.type == "Ready"), node.ready_reason)


def _condition_message(condition: ConditionFact) -> str:
    return shorten_raw(": ".join(part for part in (condition.reason, condition.message) if part))


def _finding(context: RuleContext, node: NodeFact, problem: _NodeProblem, agent: AgentFact | None) -> Finding:
    cause, facts = problem.cause, context.facts
    pods = facts.bound.get(node.name, ())
    gpus = total_in_words(pods, facts)
    critical = problem.down and bool(pods) and not node.unschedulable
    evidence = []
    if problem.down and agent is not None:
        silent = Text("node-down.agent-silent", {"error": agent.error or "?"})
        evidence.append(Text("node-down.agent-answers") if agent.silent_since is None else silent)
    evidence += [Text("node-down.pods", {"count": len(pods), "gpus": gpus})] if pods else []
    evidence += [Text("node-down.says", {"message": problem.raw})] if problem.raw and problem.down else []
    return make_finding(
        "node-down", cause, {"node": label_value(node.name)},
        {"node": node.name, AGE: 0.0, "changes": problem.changes, "message": problem.raw or "?"},
        severity=Severity.CRITICAL if critical else Severity.WARNING,
        evidence=evidence, advice_values={"node": node.name}, since=problem.since,
        explains=_symptoms(node, problem, context), raw=problem.raw or ("no message" if cause == "unknown" else None),
    )  # fmt: skip


def _symptoms(node: NodeFact, problem: _NodeProblem, context: RuleContext) -> tuple[Scope, ...]:
    """Scopes of what a node outage explains. Rules that may report its cause, such as disk-full, are no symptoms.

    What happens on a node under pressure may have other causes.
    """
    explains = problem.down or problem.cause in ("flapping", "network")
    return (Scope(labels={"node": label_value(node.name)}, rules=context.symptoms),) if explains else ()


RULE = Rule(
    "node-down", Limits, CAUSES, evaluate, SubjectKind.NODE, uses=("node", "agent", "pods"), kube=("nodes",),
    suppressed_by=("disk-full",), latency={"flapping": Latency(resolve_limit="window"), ANY_CAUSE: Latency()},
)  # fmt: skip
