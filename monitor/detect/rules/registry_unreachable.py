"""registry-unreachable: nodes cannot reach a registry; one finding instead of many failed pulls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import Latency, Rule, RuleContext, RuleResult, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_values
from monitor.detect.lib import registries
from monitor.detect.lib.pods import EVERYTHING, raw_text
from monitor.detect.lib.pulls import REGISTRY_CAUSES
from monitor.detect.lib.registries import CONNECT, DOWN, RESOLVE, TRUST, RegistryFailure, RegistryReachability
from monitor.detect.visibility import resources_lost
from monitor.facts.findings import Finding, Scope
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


_Memory = dict[str, dict[str, Any]]  # start, nodes and cause of each outage by name of the registry or node


@dataclass(frozen=True)
class _Outage:
    """Failures of a registry (its `label` is "service") or node with their start, and what was reported of them.

    `well` are the other nodes that reach the registry since then, and `daemon` is whether the daemon does.
    """

    label: str
    name: str
    failures: Sequence[RegistryFailure]
    since: float
    well: set[str]
    daemon: bool
    is_new: bool
    was_down: bool

    @property
    def nodes(self) -> list[str]:
        return sorted({failure.node for failure in self.failures})


def evaluate(reach: RegistryReachability, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """Registries that nodes cannot reach. The number of failing nodes tells whose fault it is."""
    before, after = _entries(memory), _Memory()
    findings, due = [], []
    for outage in _outages(reach, context, before, now):
        known = after[outage.name] = {"since": outage.since, "nodes": outage.nodes[:MAX_REMEMBERED_NODES]}
        if outage.is_new and registries.is_undecided(outage.failures, reach, outage.since, now):
            known["unreported"] = True
            due.append(outage.since + registries.UNDECIDED_SECONDS)
        else:
            finding = _finding(outage)
            known["cause"] = finding.cause
            findings.append(finding)
    _remember_blind(after, before, reach.blind)
    return RuleResult(tuple(findings), after or None, _blind(context, after, reach.blind), min(due, default=None))


def _entries(memory: Any) -> _Memory:
    """The memory without what another version may have written."""
    entries = memory.items() if isinstance(memory, dict) else ()
    return {name: known for name, known in entries if isinstance(known, dict) and isinstance(known.get("nodes"), list)}


def _outages(reach: RegistryReachability, context: RuleContext, before: _Memory, now: float) -> Iterator[_Outage]:
    """Proven outages of registries, then those of nodes."""
    alone = defaultdict[str, list[RegistryFailure]](list)
    for registry, by_node in sorted(reach.failures.items()):
        shared, own = _split(registry, [by_node[node] for node in sorted(by_node)], reach, before)
        for failure in own:
            alone[failure.node].append(failure)
        proven = _is_proven(shared, context.limits.of({"service": registry}))
        if shared and (proven or reach.daemon_reached.get(registry) is False):
            yield _outage("service", registry, shared, reach, before, now)
    for node, failures in sorted(alone.items()):
        if _is_proven(failures, context.limits.of({"node": node})):
            yield _outage("node", node, failures, reach, before, now)


def _split(
    registry: str, failures: Sequence[RegistryFailure], reach: RegistryReachability, before: _Memory
) -> tuple[list[RegistryFailure], list[RegistryFailure]]:
    """Failures attributed to the registry, and those attributed to a node.

    The registry is at fault if several nodes fail alike, or the daemon or the registry itself indicates it. The last
    node to recover from a shared failure is not a new failure of that node.
    """
    kinds = Counter(_kind(failure) for failure in failures)
    unreachable, known = reach.daemon_reached.get(registry) is False, set(before.get(registry, {}).get("nodes", ()))
    shared, own = list[RegistryFailure](), list[RegistryFailure]()
    for failure in failures:
        answers_wrongly = failure.cause == DOWN and not (failure.probed and reach.reached_from(registry))
        is_shared = unreachable or kinds[_kind(failure)] > 1 or answers_wrongly or failure.node in known
        (shared if is_shared else own).append(failure)
    return shared, own


def _kind(failure: RegistryFailure) -> str:
    """A registry going down answers with errors first and not at all later."""
    return CONNECT if failure.cause == DOWN else failure.cause


def _is_proven(failures: Sequence[RegistryFailure], limits: Limits) -> bool:
    images = set[str]().union(*(failure.images for failure in failures))
    # A misspelt host resolves nowhere; one that refuses several nodes exists.
    several = len({failure.node for failure in failures}) > 1 and any(failure.cause != RESOLVE for failure in failures)
    return any(failure.probed for failure in failures) or len(images) >= limits.images or several


def _outage(
    label: str, name: str, failures: Sequence[RegistryFailure], reach: RegistryReachability, before: _Memory, now: float
) -> _Outage:
    """State of the failures of a registry or node until now."""
    known, nodes = before.get(name, {}), {failure.node for failure in failures}
    # It began with the unreported failures of its nodes.
    entries = [known, *(before[node] for node in nodes if node in before and "unreported" in before[node])]
    times = [*(failure.since for failure in failures), *(entry.get("since") for entry in entries)]
    since = min((at for at in times if isinstance(at, float | int)), default=now)
    # Nodes recover one after another; the remaining ones still belong to the outage of the registry.
    was_down = known.get("cause") == DOWN and nodes <= set(known["nodes"])
    daemon = any(reach.daemon_reached.get(failure.registry, False) for failure in failures)
    is_new = not known or "unreported" in known
    return _Outage(
        label, name, failures, since, registries.other_nodes(failures, reach, since), daemon, is_new, was_down
    )


def _finding(outage: _Outage) -> Finding:
    cause, nodes = _cause(outage), outage.nodes
    names = sorted({failure.registry for failure in outage.failures})
    values: dict[str, Value] = {"nodes": _names(nodes), "node": nodes[0], "count": len(nodes)}
    values |= {"registries": _names(names), "registry": names[0]}
    explains = (
        Scope(labels=label_values({**subject}), rules=(rule,), causes=causes)
        for subject in _symptoms(outage)
        for rule, causes in SYMPTOMS
    )
    return make_finding(
        "registry-unreachable", cause, label_values({outage.label: outage.name}), values,
        evidence=_evidence(outage.failures, len(outage.well)), since=outage.since, explains=explains,
        raw=raw_text(next((failure.error for failure in outage.failures if failure.error), None)),
    )  # fmt: skip


def _cause(outage: _Outage) -> str:
    cause = Counter(failure.cause for failure in outage.failures).most_common(1)[0][0]
    if outage.label == "node":
        return CONNECT if cause == DOWN else cause
    return DOWN if cause == CONNECT and (outage.was_down or not (outage.well or outage.daemon)) else cause


def _symptoms(outage: _Outage) -> list[dict[str, str]]:
    """Labels of failing pulls: of the registry anywhere if no node reaches it, else on the failing nodes."""
    if outage.label == "service" and (not outage.well or len(outage.failures) > MAX_REMEMBERED_NODES):
        return [{"service": outage.name}]
    return [{"service": failure.registry, "node": failure.node} for failure in outage.failures]


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMED]) + (" …" if len(names) > MAX_NAMED else "")


def _evidence(failures: Sequence[RegistryFailure], well: int) -> list[Text]:
    evidence = []
    if probed := [failure for failure in failures if failure.probed]:
        nodes = {failure.node for failure in probed}
        evidence.append(Text("registry-unreachable.probes", {"count": len(nodes), "error": probed[0].error or "?"}))
    if well:
        evidence.append(Text("registry-unreachable.others", {"count": well}))
    images, pods = (set[str]().union(*sets) for sets in zip(*((t.images, t.pods) for t in failures), strict=True))
    if pods:
        evidence.append(Text("registry-unreachable.pulls", {"pods": len(pods), "images": len(images)}))
    return evidence


def _remember_blind(after: _Memory, before: _Memory, blind: frozenset[str]) -> None:
    """Keep what is known of nodes whose probes are unknown now."""
    for name, known in before.items():
        if silent := blind.intersection(known["nodes"]):
            entry = after.setdefault(name, known | {"nodes": []})
            entry["nodes"] = sorted({*entry["nodes"], *silent})[:MAX_REMEMBERED_NODES]


def _blind(context: RuleContext, remembered: _Memory, blind: frozenset[str]) -> tuple[Scope, ...]:
    if resources_lost(context, "pods"):
        return (EVERYTHING,)
    services = [name for name, known in remembered.items() if not blind.isdisjoint(known["nodes"])]
    by_node = (Scope(labels={"node": node}) for node in sorted(blind))
    return (*by_node, *(Scope(labels={"service": name}) for name in services))


RULE = Rule(
    "registry-unreachable", Limits, CAUSES, evaluate, SubjectKind.REGISTRY,
    suppressed_by=("node-down",), latency=Latency(collector="probes"),
)  # fmt: skip
