"""registry-unreachable: nodes cannot reach a registry; one finding instead of many failed pulls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, SubjectKind, whole_cluster
from monitor.detect.lib.pods import EVERYTHING, label_values, raw_text
from monitor.detect.lib.pulls import REGISTRY_CAUSES
from monitor.detect.lib.registries import (
    CONNECT,
    DOWN,
    RESOLVE,
    TRUST,
    RegistryFailure,
    RegistryReachability,
    is_undecided,
    other_nodes,
    registry_reachability,
)
from monitor.detect.visibility import resources_unavailable
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text, Value

CAUSES = (RESOLVE, CONNECT, TRUST, DOWN)
# Being unreachable does not explain images that are missing in the registry.
SYMPTOMS: tuple[tuple[str, tuple[str, ...]], ...] = (("image-pull", REGISTRY_CAUSES), ("image-pull-slow", ()))
MAX_NAMED = 5
MAX_REMEMBERED_NODES = 200  # per registry


@dataclass(frozen=True)
class Limits:
    """Distinct images that have to fail. A single one may have a misspelt registry; a failed probe is enough."""

    images: int = 2


@dataclass(frozen=True)
class _Outage:
    """Failures with their start, the nodes and the daemon that reach the registry since, and what was reported."""

    failures: Sequence[RegistryFailure]
    since: float
    well: set[str]
    daemon: bool
    is_new: bool
    was_down: bool


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Registries that nodes cannot reach. The number of failing nodes tells whose fault it is."""
    before: dict[str, Any] = memory if isinstance(memory, dict) else {}
    reachability = registry_reachability(context)
    findings, alone = list[Finding](), defaultdict[str, list[RegistryFailure]](list)
    doubts: dict[str, dict[str, Any]] = {}

    def tell(name: str, failures: Sequence[RegistryFailure], of: Callable[[str, _Outage], Finding]) -> None:
        outage = _outage(name, failures, reachability, before, context.now)
        if outage.is_new and is_undecided(failures, reachability, outage.since, context.now):
            nodes = sorted({failure.node for failure in failures})
            doubts[name] = {"since": outage.since, "nodes": nodes[:MAX_REMEMBERED_NODES], "untold": True}
        else:
            findings.append(of(name, outage))

    for registry, by_node in sorted(reachability.failures.items()):
        limits: Limits = context.limits.of({"service": registry})
        shared, own = _split(
            registry, [by_node[node] for node in sorted(by_node)], reachability, _nodes(before.get(registry))
        )
        for failure in own:
            alone[failure.node].append(failure)
        if shared and (_is_proven(shared, limits) or reachability.daemon_reached.get(registry) is False):
            tell(registry, shared, _registry_finding)
    for node, failures in sorted(alone.items()):
        if _is_proven(failures, context.limits.of({"node": node})):
            tell(node, failures, _node_finding)
    blind = _blind_nodes(context)
    remembered = doubts | _remember(findings, reachability, before, blind)
    return RuleResult(tuple(findings), remembered, _blind(context, remembered, blind))


def _split(
    registry: str, failures: Sequence[RegistryFailure], reachability: RegistryReachability, before: set[str]
) -> tuple[list[RegistryFailure], list[RegistryFailure]]:
    """Failures attributed to the registry, and those attributed to a node.

    The registry is at fault if several nodes fail alike, or the daemon or the registry itself indicates it. The last
    node to recover from a shared failure is not a new failure of that node.
    """
    kinds = Counter(_kind(failure) for failure in failures)
    shared: list[RegistryFailure] = []
    own: list[RegistryFailure] = []
    for failure in failures:
        answers_wrongly = failure.cause == DOWN and not (failure.probed and reachability.reached_at[registry])
        is_shared = kinds[_kind(failure)] > 1 or answers_wrongly or reachability.daemon_reached.get(registry) is False
        is_shared = is_shared or failure.node in before
        (shared if is_shared else own).append(failure)
    return shared, own


def _nodes(known: Any) -> set[str]:
    """Remembered nodes that did not reach a registry."""
    return set(known.get("nodes") or ()) if isinstance(known, dict) else set()


def _kind(failure: RegistryFailure) -> str:
    """A registry going down answers with errors first and not at all later."""
    return CONNECT if failure.cause == DOWN else failure.cause


def _is_proven(failures: Sequence[RegistryFailure], limits: Limits) -> bool:
    images = set[str]().union(*(failure.images for failure in failures))
    # A misspelt host resolves nowhere; one that refuses several nodes exists.
    several = len({failure.node for failure in failures}) > 1 and any(failure.cause != RESOLVE for failure in failures)
    return any(failure.probed for failure in failures) or len(images) >= limits.images or several


def _registry_finding(registry: str, outage: _Outage) -> Finding:
    cause = _main_cause(outage.failures)
    if cause == CONNECT and (outage.was_down or not (outage.well or outage.daemon)):
        cause = DOWN
    labels: list[dict[str, str]] = [{"service": registry}]
    if outage.well and len(outage.failures) <= MAX_REMEMBERED_NODES:
        labels = [{"service": registry, "node": failure.node} for failure in outage.failures]
    return _finding(cause, {"service": registry}, outage, labels)


def _node_finding(node: str, outage: _Outage) -> Finding:
    cause = _main_cause(outage.failures)
    labels = [{"node": node, "service": failure.registry} for failure in outage.failures]
    return _finding(CONNECT if cause == DOWN else cause, {"node": node}, outage, labels)


def _main_cause(failures: Sequence[RegistryFailure]) -> str:
    return Counter(failure.cause for failure in failures).most_common(1)[0][0]


def _finding(cause: str, labels: dict[str, str], outage: _Outage, symptoms: Sequence[dict[str, str]]) -> Finding:
    failures = outage.failures
    nodes, registries = (
        sorted({failure.node for failure in failures}),
        sorted({failure.registry for failure in failures}),
    )
    values: dict[str, Value] = {
        "nodes": _names(nodes),
        "node": nodes[0],
        "count": len(nodes),
        "registries": _names(registries),
        "registry": registries[0],
    }
    return Finding(
        rule="registry-unreachable",
        severity=Severity.WARNING,
        cause=cause,
        labels=label_values({**labels}),
        headline=Text(key=f"registry-unreachable.{cause}", values=values),
        evidence=tuple(_evidence(failures, len(outage.well))),
        advice=(Text(key=f"registry-unreachable.{cause}.advice", values=values),),
        since=outage.since,
        explains=tuple(
            Scope(labels=label_values({**subject}), rules=(rule,), causes=causes)
            for subject in symptoms
            for rule, causes in SYMPTOMS
        ),
        raw=raw_text(next((failure.error for failure in failures if failure.error), None)),
    )


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) + (" …" if len(names) > MAX_NAMED else "")


def _evidence(failures: Sequence[RegistryFailure], well: int) -> list[Text]:
    evidence = []
    probed = [failure for failure in failures if failure.probed]
    if probed:
        values: dict[str, Value] = {"count": len({failure.node for failure in probed}), "error": probed[0].error or "?"}
        evidence.append(Text(key="registry-unreachable.probes", values=values))
    if well:
        evidence.append(Text(key="registry-unreachable.others", values={"count": well}))
    images, pods = (set[str]().union(*sets) for sets in zip(*((t.images, t.pods) for t in failures), strict=True))
    if pods:
        evidence.append(Text(key="registry-unreachable.pulls", values={"pods": len(pods), "images": len(images)}))
    return evidence


def _outage(
    name: str,
    failures: Sequence[RegistryFailure],
    reachability: RegistryReachability,
    before: dict[str, Any],
    now: float,
) -> _Outage:
    """State of the failures of a registry or node until now."""
    known, nodes = before.get(name), {failure.node for failure in failures}
    reported = known if isinstance(known, dict) else {}
    # It began with the unreported failures of its nodes.
    entries = [reported, *(before[node] for node in nodes if node in before and _is_unreported(before[node]))]
    times = [failure.since for failure in failures] + [
        entry.get("since") for entry in entries if isinstance(entry, dict)
    ]
    since = min((at for at in times if isinstance(at, float | int)), default=now)
    # Nodes recover one after another; the remaining ones still belong to the outage of the registry.
    was_down = reported.get("cause") == DOWN and nodes <= _nodes(known)
    daemon = any(reachability.daemon_reached.get(failure.registry, False) for failure in failures)
    return _Outage(failures, since, other_nodes(failures, reachability, since), daemon, _is_unreported(known), was_down)


def _is_unreported(known: Any) -> bool:
    """Whether a failure is new, or was undecided until now."""
    return not isinstance(known, dict) or bool(known.get("untold"))


def _name(finding: Finding) -> str:
    return next(iter(finding.labels.values()), "")


def _remember(
    findings: Sequence[Finding], reachability: RegistryReachability, before: dict[str, Any], blind: set[str]
) -> dict[str, dict[str, Any]]:
    """Start and nodes by name of the subject, including silent nodes."""
    memory: dict[str, dict[str, Any]] = {}
    for finding in findings:
        nodes = sorted(reachability.failures.get(finding.labels.get("service", ""), {}))
        memory[_name(finding)] = {"since": finding.since, "nodes": nodes[:MAX_REMEMBERED_NODES], "cause": finding.cause}
    for name, known in before.items():
        silent = sorted(blind & set(known.get("nodes") or ())) if isinstance(known, dict) else []
        if silent:
            entry = memory.setdefault(name, {"since": known.get("since"), "nodes": []})
            entry["nodes"] = sorted({*entry["nodes"], *silent})[:MAX_REMEMBERED_NODES]
    return memory


def _blind(context: RuleContext, remembered: dict[str, dict[str, Any]], blind: set[str]) -> tuple[Scope, ...]:
    if resources_unavailable(context, "pods"):
        return (EVERYTHING,)
    services = [name for name, known in remembered.items() if blind & set(known["nodes"])]
    by_node = (Scope(labels={"node": node}) for node in sorted(blind))
    return (*by_node, *(Scope(labels={"service": name}) for name in services))


def _blind_nodes(context: RuleContext) -> set[str]:
    """Nodes whose probes are unknown now."""
    return {agent.node for agent in context.facts.agents if agent.node and _is_blind(agent)}


def _is_blind(agent: AgentFact) -> bool:
    if agent.silent_since is not None or agent.snapshot is None:
        return True
    collector = next((item for item in agent.snapshot.collectors if item.name == "probes"), None)
    return agent.snapshot.probes is None and collector is not None and collector.outcome != "absent"


RULE = Rule(
    "registry-unreachable",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("node-down",),
    latency={ANY_CAUSE: Latency(collector="probes")},
)
