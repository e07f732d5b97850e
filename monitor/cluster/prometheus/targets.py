"""Scrape targets of the store, and the facts of agents that follow from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from monitor.cluster.prometheus.query import QuerySeries
from monitor.cluster.prometheus.series.rebuild import OWN_LABELS, READS, Sample
from monitor.facts.agents import AgentFact
from monitor.facts.node import NodeSnapshot

INSTANCE = "instance"
DOWN = "Prometheus cannot scrape it (up is 0)"
DROPPED = "Prometheus does not scrape it any more"
TOO_OLD = "Prometheus scrapes it, but it has no gpuwarden_snapshot_time_seconds: its version is too old"
NEVER = "Prometheus has no series of it: it is not among the targets"


@dataclass(frozen=True)
class Scrape:
    """Newest scrape of an agent: time and target labels. `alone` unless another replica scrapes it too."""

    at: float
    labels: Mapping[str, str]
    alone: bool = True


@dataclass(frozen=True)
class ScrapeState:
    """Scrapes of one moment, by instance. `nodes` are those of the agents known in the last hour."""

    up: Mapping[str, bool] = field(default_factory=dict)
    scrapes: Mapping[str, Scrape] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)

    @property
    def instances(self) -> set[str]:
        return {*self.up, *self.scrapes, *self.nodes}


def newest_scrapes(series: Iterable[QuerySeries]) -> dict[str, Scrape]:
    """Newest scrape of each instance, which several replicas may scrape."""
    found: dict[str, Scrape] = {}
    for each in series:
        instance = each.metric.get(INSTANCE, "")
        scrape, known = Scrape(float(each.value[1]), each.metric), found.get(instance)
        if known is not None:
            scrape = replace(max(scrape, known, key=_newer), alone=False)
        found[instance] = scrape
    return found


def _newer(scrape: Scrape) -> tuple[float, list[tuple[str, str]]]:
    return scrape.at, sorted(scrape.labels.items())


def any_up(series: Iterable[QuerySeries]) -> dict[str, bool]:
    """Whether any replica can scrape each instance."""
    found: dict[str, bool] = {}
    for each in series:
        instance = each.metric.get(INSTANCE, "")
        found[instance] = found.get(instance, False) or float(each.value[1]) != 0
    return found


def nodes_of(series: Iterable[QuerySeries]) -> dict[str, str]:
    """Node of each instance, from the info series of the agents."""
    return {each.metric.get(INSTANCE, ""): _own(each.metric, "node") for each in series if _own(each.metric, "node")}


def _own(labels: Mapping[str, str], name: str) -> str:
    return labels.get(f"exported_{name}") or labels.get(name, "")


def samples_of(series: Iterable[QuerySeries], scrapes: Mapping[str, Scrape]) -> dict[str, list[Sample]]:
    """Samples of each instance as the agent exposed them.

    Series of another replica are left out. A label that the target also has was renamed by the scrape
    (`exported_pod`), or is the target's where the agent left it empty.
    """
    targets = {instance: _Target.of(scrape) for instance, scrape in scrapes.items()}
    found: dict[str, list[Sample]] = {instance: [] for instance in scrapes}
    for each in series:
        labels = each.metric
        instance, name = labels.get(INSTANCE, ""), labels.get("__name__", "")
        target = targets.get(instance)
        if target is None or (target.telling and any(labels.get(key) != value for key, value in target.telling)):
            continue
        for key in target.shared.intersection(READS.get(name, ())):
            own = labels.get(f"exported_{key}")
            if own is not None:
                labels[key] = own
            elif labels.get(key) == target.labels[key] and key != "node":  # always set by the agent
                del labels[key]
        found[instance].append((name, labels, float(each.value[1])))
    return found


@dataclass(frozen=True)
class _Target:
    """Labels of a target: those that distinguish its replicas, if any, and those that agents use too."""

    labels: Mapping[str, str]
    telling: tuple[tuple[str, str], ...]
    shared: frozenset[str]

    @classmethod
    def of(cls, scrape: Scrape) -> _Target:
        labels = scrape.labels
        telling = tuple((name, value) for name, value in labels.items() if name not in OWN_LABELS)
        return cls(labels, () if scrape.alone else telling, OWN_LABELS.intersection(labels))


def heard(before: AgentFact | None, instance: str, snapshot: NodeSnapshot | None, at: float) -> AgentFact:
    """Fact of an agent that is scraped; without a new snapshot, the last one is kept."""
    last = snapshot or (before.snapshot if before else None)
    node = last.node if last else (before.node if before else None)
    received = at if snapshot is not None else (before.received_at if before else None)
    return AgentFact(target=instance, node=node, snapshot=last, received_at=received)


def unheard(before: AgentFact | None, instance: str, node: str | None, error: str, now: float) -> AgentFact:
    """Fact of a silent agent."""
    known = before or AgentFact(target=instance, node=node)
    silent = known.silent_since if known.silent_since is not None else now
    return msgspec.structs.replace(
        known, node=known.node or node, silent_since=silent, error=error, failures=known.failures + 1
    )


def why_unheard(state: ScrapeState, instance: str) -> str | None:
    """Why an agent is silent; None if it is not."""
    up = state.up.get(instance)
    if up is False:
        return DOWN
    if instance in state.scrapes:
        return None
    return DROPPED if up is None else TOO_OLD


def one_per_node(
    agents: Iterable[AgentFact], addresses: Mapping[str, str], before: Mapping[str, AgentFact], unseen: str, now: float
) -> dict[str, AgentFact]:
    """One agent per node, by node, at the address by which Kubernetes knows it.

    A restarted agent is a new instance, and the old one does not count as silent. An agent that is no longer a target
    is gone unless it is among `addresses` (agents known to Kubernetes, by node). An agent known only to Kubernetes is
    silent, and `unseen` says why. `before` are the previous facts, by node.
    """
    found: dict[str, AgentFact] = {}
    for agent in sorted(agents, key=lambda each: (each.silent_since is None, each.received_at or 0.0, each.target)):
        if not (addresses and agent.error == DROPPED and agent.node not in addresses):
            found[agent.node or agent.target] = agent
    for node in addresses.keys() - found.keys():
        found[node] = unheard(before.get(node), addresses[node], node, unseen, now)
    return {node: _at(agent, addresses.get(node, agent.target)) for node, agent in found.items()}


def _at(agent: AgentFact, address: str) -> AgentFact:
    return agent if agent.target == address else msgspec.structs.replace(agent, target=address)
