"""The agents: found, answering, reading, and of our version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from monitor.doctor.model import Verdict, Verdicts, listed, not_checked, ok, problem, warning
from monitor.facts.node import CollectorFact, NodeSnapshot

STALE_INTERVALS = 3
STALE_LEAST = 30.0
# Why an agent gave no snapshot, in the order in which it is said.
TROUBLES = ("token", "tls", "refused", "timeout", "dns", "no-snapshot", "error")


@dataclass(frozen=True)
class AgentLook:
    """An agent that was asked. `trouble` is one of TROUBLES; `offset` how far its clock is ahead of ours."""

    target: str
    node: str | None = None
    trouble: str | None = None
    why: str | None = None
    snapshot: NodeSnapshot | None = None
    offset: float | None = None

    @property
    def name(self) -> str:
        return self.node or (self.snapshot.node if self.snapshot else self.target)


@dataclass(frozen=True)
class AgentsFacts:
    """All agents. `own` if they are just the one of this machine, which nobody may have started yet.

    `unknown` says why they could not even be looked for. `waiting` are agents' pods that do not run, by node.
    `gpu_nodes` are those that have GPUs in Kubernetes; None without Kubernetes.
    """

    agents: tuple[AgentLook, ...] = ()
    own: bool = False
    label: str | None = None
    unknown: str | None = None
    waiting: tuple[str, ...] = ()
    gpu_nodes: tuple[str, ...] | None = None
    version: str = ""


def judge_found(facts: AgentsFacts) -> Verdicts:
    """Given the agents, return which are missing, and which do not answer, and why."""
    if facts.unknown is not None:
        return (not_checked("agents.unknown", why=facts.unknown),)
    if facts.own and facts.agents and facts.agents[0].trouble == "refused":
        return (not_checked("agents.none-here", target=facts.agents[0].target),)
    wrong = _missing(facts)
    for trouble in TROUBLES:
        silent = [agent for agent in facts.agents if agent.trouble == trouble]
        if silent:
            names, why = listed([agent.name for agent in silent]), silent[0].why or "?"
            wrong.append(problem(f"agents.{trouble}", count=len(silent), names=names, why=why))
    if wrong:
        return tuple(wrong)
    if facts.gpu_nodes is None:
        return (ok("agents.answer", count=len(facts.agents)),)
    return (ok("agents.answer-of", count=len(facts.agents), nodes=len(facts.gpu_nodes)),)


def _missing(facts: AgentsFacts) -> list[Verdict]:
    found = {agent.name for agent in facts.agents}
    if not facts.agents and not facts.waiting:
        if facts.gpu_nodes == ():
            return [warning("agents.no-gpus")]
        return [problem("agents.none", label=facts.label or "?")]
    wrong = []
    if facts.waiting:
        wrong.append(problem("agents.waiting", count=len(facts.waiting), names=listed(facts.waiting)))
    without = [node for node in facts.gpu_nodes or () if node not in found and node not in facts.waiting]
    nameless = any(agent.trouble is not None and agent.node is None for agent in facts.agents)
    if without and not nameless:  # else one that does not answer may well be on such a node
        nodes = len(facts.gpu_nodes or ())
        wrong.append(problem("agents.missing", count=len(without), nodes=nodes, names=listed(without)))
    return wrong


def judge_readings(facts: AgentsFacts) -> Verdicts:
    """Given the agents, return what they cannot read, and what is old."""
    answering = [(agent, agent.snapshot) for agent in facts.agents if agent.snapshot is not None]
    if not answering:
        return (not_checked("agents.nobody"),)
    wrong = []
    blind = [agent.name for agent, snapshot in answering if agent.name in (facts.gpu_nodes or ()) and _blind(snapshot)]
    if blind:
        wrong.append(problem("agents.no-cards", count=len(blind), names=listed(blind)))
    for key, is_so in (("agents.hung", _hung), ("agents.failing", _failing), ("agents.stale", _stale)):
        wrong += _by_collector(key, is_so, answering)
    return tuple(wrong) or (ok("agents.read", count=len(answering)),)


def _by_collector(
    key: str,
    is_so: Callable[[CollectorFact, NodeSnapshot], bool],
    answering: Iterable[tuple[AgentLook, NodeSnapshot]],
) -> list[Verdict]:
    """Return a verdict for each collector of which this is so, and on which nodes."""
    found: dict[str, list[tuple[str, str]]] = {}
    for agent, snapshot in answering:
        for fact in snapshot.collectors:
            if is_so(fact, snapshot):
                found.setdefault(fact.name, []).append((agent.name, fact.message or "?"))
    return [
        problem(key, collector=name, count=len(where), names=listed([node for node, _ in where]), why=where[0][1])
        for name, where in found.items()
    ]


def _blind(snapshot: NodeSnapshot) -> bool:
    return any(fact.name == "gpu" and fact.outcome == "absent" for fact in snapshot.collectors)


def _hung(fact: CollectorFact, _snapshot: NodeSnapshot) -> bool:
    return fact.hung_since is not None


def _failing(fact: CollectorFact, _snapshot: NodeSnapshot) -> bool:
    return fact.hung_since is None and fact.outcome == "failed"


def _stale(fact: CollectorFact, snapshot: NodeSnapshot) -> bool:
    """Both times are of the agent's own clock: that may be wrong without anything being old."""
    if fact.outcome != "ok" or fact.hung_since is not None or fact.succeeded_at is None:
        return False
    return snapshot.at - fact.succeeded_at > max(STALE_LEAST, STALE_INTERVALS * fact.interval_seconds)


def judge_versions(facts: AgentsFacts) -> Verdicts:
    """Given the agents, return which are of another version than we are."""
    versions: dict[str, list[str]] = {}
    for agent in facts.agents:
        if agent.snapshot is not None:
            versions.setdefault(agent.snapshot.agent_version, []).append(agent.name)
    if not versions:
        return (not_checked("agents.nobody"),)
    others = {version: names for version, names in versions.items() if version != facts.version}
    return tuple(
        warning("agents.version", version=version, own=facts.version, count=len(names), names=listed(names))
        for version, names in sorted(others.items())
    ) or (ok("agents.same-version", version=facts.version),)
