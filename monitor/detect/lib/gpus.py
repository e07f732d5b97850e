"""What the rules about cards have in common. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import RuleContext, cached_per_evaluation
from monitor.detect.visibility import label_value, resources_unavailable
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.findings import Scope
from monitor.facts.gpu import GpuFact
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text, Value

MIN_CLOCK_SKEW_SECONDS = 2.0  # so much is the way that an answer takes
ABSENT = "absent"


@dataclass(frozen=True)
class BlindSpots:
    """Of what nothing can be known now: everything, or some nodes. What was found there is held."""

    everything: bool = False
    nodes: frozenset[str] = frozenset()

    def covers(self, node: str) -> bool:
        """Return whether nothing is known of a node."""
        return self.everything or node in self.nodes

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Return it as a detector says it."""
        if self.everything:
            return (Scope(labels={}),)
        return tuple(Scope(labels={"node": label_value(node)}) for node in sorted(self.nodes))


def find_blind_spots(
    context: RuleContext, reports: Mapping[str, AgentFact], *parts: str, kube: tuple[str, ...] = ()
) -> BlindSpots:
    """Return of what nothing is known, for a rule that needs these parts of a snapshot and of Kubernetes."""
    view = context.facts.view
    if view is None or (kube and resources_unavailable(context, *kube)):
        return BlindSpots(everything=True)
    lacking = [node for node, agent in reports.items() if agent.snapshot and _lacks(agent.snapshot, parts)]
    return BlindSpots(nodes=_blind_nodes(context).union(lacking))


@cached_per_evaluation
def _blind_nodes(context: RuleContext) -> frozenset[str]:
    """Return the nodes of which nothing is known, or of one card nothing."""
    view = context.facts.view
    silent = [node.name for node in view.nodes if node.silent_since is not None] if view else []
    return frozenset(silent).union([gpu.node for gpu in view.gpus if gpu.state is GpuState.UNKNOWN] if view else ())


def _lacks(snapshot: NodeSnapshot, parts: tuple[str, ...]) -> bool:
    """Whether a part is missing that is there at other times: its collector hangs or fails, or has yet to start."""
    missing = [part for part in parts if getattr(snapshot, part) is None]
    return bool(missing) and any(fact.name in missing and fact.outcome != ABSENT for fact in snapshot.collectors)


@cached_per_evaluation
def reporting_agents(context: RuleContext) -> dict[str, AgentFact]:
    """Return the agents whose word counts, by node: one that missed a single call is not silent yet for the view."""
    silent = {name for name, node in context.facts.view_of_node.items() if node.silent_since is not None}
    agents = context.facts.agent_of_node
    return {node: agent for node, agent in agents.items() if agent.snapshot is not None and node not in silent}


@cached_per_evaluation
def gpu_facts(context: RuleContext) -> dict[tuple[str, int], GpuFact]:
    """Return what the driver says of each card, by node and index."""
    return {
        (node, gpu.index): gpu
        for node, agent in reporting_agents(context).items()
        if agent.snapshot is not None and agent.snapshot.gpu is not None
        for gpu in agent.snapshot.gpu.gpus
    }


def clock_skew(agent: AgentFact | None) -> float:
    """Return what to add to the times of a node's clock to get ours."""
    if agent is None or agent.snapshot is None or agent.received_at is None:
        return 0.0
    skew = agent.received_at - agent.snapshot.at
    return skew if abs(skew) > MIN_CLOCK_SKEW_SECONDS else 0.0


def gpus_in_state(context: RuleContext, state: GpuState) -> Iterator[GpuView]:
    """Yield the cards that are in a state now."""
    view = context.facts.view
    return (gpu for gpu in (view.gpus if view else ()) if gpu.state is state)


def gpu_key(gpu: GpuView) -> str:
    """Return what a rule remembers a card by."""
    return f"{gpu.node}/{gpu.index}"


def numeric_values(memory: Any) -> dict[str, float]:
    """Given what was remembered, return the numbers in it: an older version may have left anything."""
    if not isinstance(memory, dict):
        return {}
    return {str(key): float(value) for key, value in memory.items() if isinstance(value, int | float)}


def track_since(memory: Any, found: Mapping[str, float | None], blind: BlindSpots, now: float) -> dict[str, float]:
    """Given what was remembered, return since when each thing found lasts; of hidden nodes all is kept.

    What is found comes with when it is known to have begun. Keys begin with the node and a slash.
    """
    before = numeric_values(memory)
    kept = {key: at for key, at in before.items() if key not in found and blind.covers(key.partition("/")[0])}
    for key, known in found.items():
        kept[key] = min(before.get(key, now), now if known is None else known)
    return kept


def gpu_labels(gpu: GpuView, holder: Holder | None = None) -> dict[str, str]:
    """Return the labels of a card and, if given, of who holds it."""
    labels = {"node": label_value(gpu.node), "gpu": str(gpu.index)}
    return labels | (holder_labels(holder) if holder is not None else {})


def holder_labels(holder: Holder) -> dict[str, str]:
    """Return the labels of who holds a card, as far as known."""
    named = {"pod": holder.pod, "namespace": holder.namespace, "user": holder.user, "job": holder.job}
    return {name: label_value(value) for name, value in (named | {"queue": holder.queue}).items() if value}


def gpu_limits(context: RuleContext, gpu: GpuView, holder: Holder | None = None) -> Any:
    """Return the limits for a card. Without exceptions there is no need to look who it is about."""
    limits = context.limits
    return limits.of(gpu_labels(gpu, holder)) if limits.overrides else limits.default


def gpu_values(gpu: GpuView) -> dict[str, Value]:
    """Return what names a card in a sentence."""
    return {"node": gpu.node, "gpu": gpu.index}


def holder_pod_name(holder: Holder) -> str:
    """Return how a pod is called in a sentence."""
    return f"{holder.namespace}/{holder.pod}" if holder.pod else holder.pod_uid or "?"


def owner_evidence(holder: Holder | None) -> tuple[Text, ...]:
    """Return whom to ask, if anything says so."""
    if holder is None or not holder.user:
        return ()
    return (Text(key="card-owner", values={"user": holder.user, "job": holder.job or holder.pod or "?"}),)


def memory_evidence(gpu: GpuView) -> tuple[Text, ...]:
    """Return how much of a card's memory is in use, if any."""
    used = gpu.memory_used_bytes
    return (Text(key="card-memory", values={"bytes": used}),) if used else ()


def live_holders(gpu: GpuView) -> tuple[Holder, ...]:
    """Return the live pods that have a card."""
    return tuple(holder for holder in gpu.holders if holder.live)


def sole_holder(gpu: GpuView) -> Holder | None:
    """Return the live pod that has a card, if it is the only one: a shared card's figures are nobody's."""
    if len(gpu.holders) == 1:
        return gpu.holders[0] if gpu.holders[0].live else None
    holders = live_holders(gpu)
    return holders[0] if len(holders) == 1 else None


def pods_by_uid(context: RuleContext, uids: Iterable[str | None]) -> dict[str, PodFact]:
    """Return these pods, as far as Kubernetes knows them."""
    wanted = set(uids)
    return {pod.uid: pod for pod in context.facts.pods if pod.uid in wanted} if wanted else {}
