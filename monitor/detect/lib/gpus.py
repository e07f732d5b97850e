"""Shared by the GPU rules: blind spots, GPU facts, labels and evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import RuleContext, cached_per_evaluation
from monitor.detect.labels import label_value
from monitor.detect.visibility import resources_unavailable
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Holder
from monitor.facts.findings import Scope
from monitor.facts.gpu import GpuFact
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text, Value

ABSENT = "absent"


@dataclass(frozen=True)
class BlindSpots:
    """What cannot be observed now: everything or some nodes. Findings there are held."""

    everything: bool = False
    nodes: frozenset[str] = frozenset()

    def covers(self, node: str) -> bool:
        """Whether a node cannot be observed."""
        return self.everything or node in self.nodes

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Scopes for the result of a rule."""
        if self.everything:
            return (Scope(labels={}),)
        return tuple(Scope(labels={"node": label_value(node)}) for node in sorted(self.nodes))


def find_blind_spots(
    context: RuleContext, reports: Mapping[str, AgentFact], *sections: str, kube: tuple[str, ...] = ()
) -> BlindSpots:
    """Blind spots of a rule that needs these snapshot sections and Kubernetes resources."""
    view = context.facts.view
    if view is None or (kube and resources_unavailable(context, *kube)):
        return BlindSpots(everything=True)
    lacking = [node for node, agent in reports.items() if agent.snapshot and _lacks(agent.snapshot, sections)]
    return BlindSpots(nodes=_blind_nodes(context).union(lacking))


@cached_per_evaluation
def _blind_nodes(context: RuleContext) -> frozenset[str]:
    """Nodes that are silent or have a GPU in unknown state."""
    view = context.facts.view
    silent = [node.name for node in view.nodes if node.silent_since is not None] if view else []
    return frozenset(silent).union([gpu.node for gpu in view.gpus if gpu.state is GpuState.UNKNOWN] if view else ())


def _lacks(snapshot: NodeSnapshot, sections: tuple[str, ...]) -> bool:
    """Whether a section is missing because its collector hangs, fails or has not run yet."""
    missing = [part for part in sections if getattr(snapshot, part) is None]
    return bool(missing) and any(fact.name in missing and fact.outcome != ABSENT for fact in snapshot.collectors)


@cached_per_evaluation
def reporting_agents(context: RuleContext) -> dict[str, AgentFact]:
    """Agents with a usable snapshot, by node. One missed poll does not make an agent silent."""
    silent = {name for name, node in context.facts.view_of_node.items() if node.silent_since is not None}
    agents = context.facts.agent_of_node
    return {node: agent for node, agent in agents.items() if agent.snapshot is not None and node not in silent}


@cached_per_evaluation
def gpu_facts(context: RuleContext) -> dict[tuple[str, int], GpuFact]:
    """The driver's figures of each GPU, by node and index."""
    return {
        (node, gpu.index): gpu
        for node, agent in reporting_agents(context).items()
        if agent.snapshot is not None and agent.snapshot.gpu is not None
        for gpu in agent.snapshot.gpu.gpus
    }


def gpus_in_state(context: RuleContext, state: GpuState) -> Iterator[GpuView]:
    """GPUs that are in a state now."""
    view = context.facts.view
    return (gpu for gpu in (view.gpus if view else ()) if gpu.state is state)


def gpu_key(gpu: GpuView) -> str:
    """Key of a GPU in the memory of a rule."""
    return f"{gpu.node}/{gpu.index}"


def numeric_values(memory: Any) -> dict[str, float]:
    """Numbers in the memory; an older version may have stored anything."""
    if not isinstance(memory, dict):
        return {}
    return {str(key): float(value) for key, value in memory.items() if isinstance(value, int | float)}


def track_since(memory: Any, active: Mapping[str, float | None], blind: BlindSpots, now: float) -> dict[str, float]:
    """Start time by key: the earliest known or remembered; entries of blind nodes are kept.

    `active` maps the conditions that hold now to their start, if known. Keys begin with the node and a slash.
    """
    before = numeric_values(memory)
    since = {key: at for key, at in before.items() if key not in active and blind.covers(key.partition("/")[0])}
    for key, known in active.items():
        since[key] = min(before.get(key, now), now if known is None else known)
    return since


def gpu_labels(gpu: GpuView, holder: Holder | None = None) -> dict[str, str]:
    """Labels of a GPU and, if given, of its holder."""
    labels = {"node": label_value(gpu.node), "gpu": str(gpu.index)}
    return labels | (holder_labels(holder) if holder is not None else {})


def holder_labels(holder: Holder) -> dict[str, str]:
    """Known labels of the holder of a GPU."""
    named = {"pod": holder.pod, "namespace": holder.namespace, "user": holder.user, "job": holder.job}
    return {name: label_value(value) for name, value in (named | {"queue": holder.queue}).items() if value}


def gpu_limits(context: RuleContext, gpu: GpuView, holder: Holder | None = None) -> Any:
    """Limits for a GPU. Without overrides its labels are not needed."""
    limits = context.limits
    return limits.of(gpu_labels(gpu, holder)) if limits.overrides else limits.default


def gpu_values(gpu: GpuView) -> dict[str, Value]:
    """Values that identify a GPU in a text."""
    return {"node": gpu.node, "gpu": gpu.index}


def holder_pod_name(holder: Holder) -> str:
    """Name of the holder's pod in a text."""
    return f"{holder.namespace}/{holder.pod}" if holder.pod else holder.pod_uid or "?"


def owner_evidence(holder: Holder | None) -> tuple[Text, ...]:
    """The user and job that hold a GPU, if known."""
    if holder is None or not holder.user:
        return ()
    return (Text(key="card-owner", values={"user": holder.user, "job": holder.job or holder.pod or "?"}),)


def memory_evidence(gpu: GpuView) -> tuple[Text, ...]:
    """GPU memory in use, if any."""
    used = gpu.memory_used_bytes
    return (Text(key="card-memory", values={"bytes": used}),) if used else ()


def live_holders(gpu: GpuView) -> tuple[Holder, ...]:
    """Live pods that hold a GPU."""
    return tuple(holder for holder in gpu.holders if holder.live)


def sole_holder(gpu: GpuView) -> Holder | None:
    """The only live holder of a GPU; figures of a shared GPU cannot be attributed to a pod."""
    if len(gpu.holders) == 1:
        return gpu.holders[0] if gpu.holders[0].live else None
    holders = live_holders(gpu)
    return holders[0] if len(holders) == 1 else None


def pods_by_uid(context: RuleContext, uids: Iterable[str | None]) -> dict[str, PodFact]:
    """Pods with these UIDs that Kubernetes knows."""
    wanted = set(uids)
    return {pod.uid: pod for pod in context.facts.pods if pod.uid in wanted} if wanted else {}
