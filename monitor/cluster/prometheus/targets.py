"""Who is scraped, and what that makes of each agent: from what the store says of its targets to agents' facts. Pure."""

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
    """The newest scrape of an agent: when, and the labels of the target. `alone` if nobody else scrapes it too."""

    at: float
    labels: Mapping[str, str]
    alone: bool = True


@dataclass(frozen=True)
class ScrapeState:
    """What the store says at one moment, by instance. `nodes` are those of agents that it knew of late."""

    up: Mapping[str, bool] = field(default_factory=dict)
    scrapes: Mapping[str, Scrape] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)

    @property
    def instances(self) -> set[str]:
        return {*self.up, *self.scrapes, *self.nodes}


def newest_scrapes(series: Iterable[QuerySeries]) -> dict[str, Scrape]:
    """Given when each target was last scraped, return the newest scrape of each instance. Two replicas may have one."""
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
    """Given `up` of each target, return whether anybody can scrape it."""
    found: dict[str, bool] = {}
    for each in series:
        instance = each.metric.get(INSTANCE, "")
        found[instance] = found.get(instance, False) or float(each.value[1]) != 0
    return found


def nodes_of(series: Iterable[QuerySeries]) -> dict[str, str]:
    """Given the info series of agents, return the node of each instance."""
    return {each.metric.get(INSTANCE, ""): _own(each.metric, "node") for each in series if _own(each.metric, "node")}


def _own(labels: Mapping[str, str], name: str) -> str:
    return labels.get(f"exported_{name}") or labels.get(name, "")


def samples_of(series: Iterable[QuerySeries], scrapes: Mapping[str, Scrape]) -> dict[str, list[Sample]]:
    """Given series of some instances, return the samples of each as the agent exposed them.

    What another replica scraped is left out. A label that the target has too was renamed on the way (`exported_pod`),
    or, where the agent left it empty, is the target's.
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
            elif labels.get(key) == target.labels[key] and key != "node":  # the agent always names its node
                del labels[key]
        found[instance].append((name, labels, float(each.value[1])))
    return found


@dataclass(frozen=True)
class _Target:
    """A target's labels: those that tell its replicas apart, where there are any, and those that are also our own."""

    labels: Mapping[str, str]
    telling: tuple[tuple[str, str], ...]
    shared: frozenset[str]

    @classmethod
    def of(cls, scrape: Scrape) -> _Target:
        labels = scrape.labels
        telling = tuple((name, value) for name, value in labels.items() if name not in OWN_LABELS)
        return cls(labels, () if scrape.alone else telling, OWN_LABELS.intersection(labels))


def heard(before: AgentFact | None, instance: str, snapshot: NodeSnapshot | None, at: float) -> AgentFact:
    """Return what is known of an agent that is scraped; without a new snapshot, the last one stands."""
    last = snapshot or (before.snapshot if before else None)
    node = last.node if last else (before.node if before else None)
    received = at if snapshot is not None else (before.received_at if before else None)
    return AgentFact(target=instance, node=node, snapshot=last, received_at=received)


def unheard(before: AgentFact | None, instance: str, node: str | None, error: str, now: float) -> AgentFact:
    """Return what is known of an agent of which nothing is heard."""
    known = before or AgentFact(target=instance, node=node)
    silent = known.silent_since if known.silent_since is not None else now
    return msgspec.structs.replace(
        known, node=known.node or node, silent_since=silent, error=error, failures=known.failures + 1
    )


def why_unheard(seen: ScrapeState, instance: str) -> str | None:
    """Return why nothing is heard of an agent; None if it is heard."""
    up = seen.up.get(instance)
    if up is False:
        return DOWN
    if instance in seen.scrapes:
        return None
    return DROPPED if up is None else TOO_OLD


def one_per_node(
    agents: Iterable[AgentFact], addresses: Mapping[str, str], before: Mapping[str, AgentFact], unseen: str, now: float
) -> dict[str, AgentFact]:
    """Given the agents by instance, return one for each node, by node, at the address that Kubernetes knows it under.

    An agent that was started again is another instance: the old one is no silent agent. One that is no target any more
    is gone if Kubernetes, which knows agents (`addresses`, by node), does not know it. One that Kubernetes knows and
    that the store does not is silent, and `unseen` says why. `before` are the agents of the last time, by node.
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
