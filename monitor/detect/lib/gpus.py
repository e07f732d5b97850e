"""Shared by the GPU rules: labels, limits, evidence, and the nodes of GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from monitor.detect.base import RuleContext
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value, label_values
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuView, Holder
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.gpu import GpuFact
from monitor.facts.text import Text, Value


def agents_of(gpus: Iterable[GpuView], facts: ClusterFacts) -> dict[str, AgentFact]:
    """Agents of the nodes of these GPUs, by node."""
    agents = facts.agent_of_node
    return {node: agents[node] for node in {gpu.node for gpu in gpus} if node in agents}


def gpu_facts(agents: Mapping[str, AgentFact]) -> dict[tuple[str, int], GpuFact]:
    """The driver's figures of each GPU, by node and index."""
    return {
        (node, gpu.index): gpu
        for node, agent in agents.items()
        if agent.snapshot is not None and agent.snapshot.gpu is not None
        for gpu in agent.snapshot.gpu.gpus
    }


def gpu_key(gpu: GpuView) -> str:
    """Key of a GPU in the memory of a rule."""
    return f"{gpu.node}/{gpu.index}"


def numeric_values(memory: Any) -> dict[str, float]:
    """Numbers in the memory; an older version may have stored anything."""
    if not isinstance(memory, dict):
        return {}
    return {str(key): float(value) for key, value in memory.items() if isinstance(value, int | float)}


def track_since(memory: Any, active: Mapping[str, float | None], now: float) -> dict[str, float]:
    """Start of each condition that holds now: the earliest known or remembered, never in the future."""
    before = numeric_values(memory)
    return {key: min(before.get(key, now), now if known is None else known, now) for key, known in active.items()}


def gpu_labels(gpu: GpuView, holder: Holder | None = None) -> dict[str, str]:
    """Labels of a GPU and, if given, of its holder."""
    labels = {"node": label_value(gpu.node), "gpu": str(gpu.index)}
    return labels | (holder_labels(holder) if holder is not None else {})


def holder_labels(holder: Holder) -> dict[str, str]:
    """Known labels of the holder of a GPU."""
    named = {"pod": holder.pod, "namespace": holder.namespace, "user": holder.user, "job": holder.job}
    return label_values({**named, "queue": holder.queue})


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


def gpu_finding(
    rule: str,
    cause: str,
    gpu: GpuView,
    holder: Holder | None,
    values: Mapping[str, Value],
    *,
    severity: Severity = Severity.WARNING,
    evidence: Iterable[Text] = (),
    advice: Iterable[Text] | None = None,
    advice_key: str | None = None,
    since: float | None,
    explains: Iterable[Scope] = (),
) -> Finding:
    """A finding about a GPU and, if given, its holder; `values` are those beyond the GPU itself."""
    labels, all_values = gpu_labels(gpu, holder), {**gpu_values(gpu), **values}
    evidence = (*evidence, *owner_evidence(holder))
    return make_finding(
        rule, cause, labels, all_values, severity=severity, evidence=evidence, advice=advice, advice_key=advice_key,
        since=since, explains=explains,
    )  # fmt: skip


def live_holders(gpu: GpuView) -> tuple[Holder, ...]:
    """Live pods that hold a GPU."""
    return tuple(holder for holder in gpu.holders if holder.live)


def sole_holder(gpu: GpuView) -> Holder | None:
    """The only live holder of a GPU; figures of a shared GPU cannot be attributed to a pod."""
    if len(gpu.holders) == 1:
        return gpu.holders[0] if gpu.holders[0].live else None
    holders = live_holders(gpu)
    return holders[0] if len(holders) == 1 else None
