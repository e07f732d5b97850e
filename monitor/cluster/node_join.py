"""Joins what the agent of one node reports with what Kubernetes says, independently of all other nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from monitor.cluster.claims import NO_CLAIMS, GpuClaims, NodeInputs
from monitor.cluster.gpu_state import GpuInput, StateLimits, decide_state
from monitor.cluster.holders import RESOURCE_CLAIM, GpuClaim, PodFate, has_live_holder
from monitor.cluster.node_shares import node_shares
from monitor.facts.cluster import GpuState, GpuView, NodeView
from monitor.facts.gpu import GpuFact, XidEvent
from monitor.facts.gpu_sharing import counts_slots, offers_whole_gpus, physical_gpus
from monitor.facts.kube import NodeFact
from monitor.facts.node import CollectorFact, NodeSnapshot
from monitor.facts.text import Evidence

MODEL_LABELS = ("nvidia.com/gpu.product", "gpu.nvidia.com/model", "aliyun.accelerator/nvidia_name")
MAX_LATENCY_SECONDS = 2.0  # a larger difference of the clocks is skew
# States in which a GPU without a live holder cannot be given to a pod.
UNAVAILABLE_STATES = (GpuState.FAULTY, GpuState.WEDGED, GpuState.ZOMBIE, GpuState.ORPHAN, GpuState.GHOST)
# Why GPUs that are monitored cannot be seen at the moment; on other nodes only Kubernetes counts them.
OUTAGES = ("agent-silent", "driver-hung", "collector-failed")


class GpuMemory(msgspec.Struct, frozen=True, gc=False):
    """State of a GPU that is carried over from one view to the next."""

    state: GpuState
    since: float
    idle_since: float | None = None


GpuMemories = Mapping[str, GpuMemory]  # by gpu_memory_key


class _NodeContext(NamedTuple):
    """What all GPUs of a node share. `claims` and `xids` are by GPU uuid."""

    inputs: NodeInputs
    blind: Evidence | None
    claims: Mapping[str, GpuClaims]
    xids: Mapping[str | None, list[XidEvent]]
    processes_known: bool
    skew: float
    limits: StateLimits
    now: float


def join_node(
    inputs: NodeInputs, claims: Mapping[str, GpuClaims], before: GpuMemories, limits: StateLimits, now: float
) -> tuple[NodeView, tuple[GpuView, ...]]:
    """View of a node and of its GPUs, with the claims to them; `before` holds their previous states."""
    blind, snapshot = _blind(inputs, limits, now), _snapshot(inputs)
    context = _NodeContext(
        inputs,
        blind,
        {} if blind else claims,
        _xids(snapshot),
        snapshot is not None and _processes_known(snapshot),
        _skew(inputs),
        limits,
        now,
    )
    views = tuple(
        [_gpu_view(context, gpu, before.get(gpu_memory_key(inputs.name, gpu.uuid, gpu.index))) for gpu in _gpus(inputs)]
    )
    return _node_view(inputs, views, blind, now), views


def gpu_memory_key(node: str, uuid: str | None, index: int) -> str:
    """Key of a GPU in GpuMemories."""
    return f"{node}/{uuid}" if uuid else f"{node}#{index}"


def _snapshot(inputs: NodeInputs) -> NodeSnapshot | None:
    return inputs.agent.snapshot if inputs.agent else None


def _gpus(inputs: NodeInputs) -> Sequence[GpuFact]:
    """GPUs of the node as last reported, else as many as Kubernetes counts."""
    snapshot = _snapshot(inputs)
    if snapshot is not None and snapshot.gpu is not None:
        return snapshot.gpu.gpus
    count = physical_gpus(inputs.node, inputs.resource) if inputs.node else None
    return [GpuFact(index=index) for index in range(count or 0)]


def _blind(inputs: NodeInputs, limits: StateLimits, now: float) -> Evidence | None:
    """Why the state of the node's GPUs is unknown, or None."""
    agent, snapshot = inputs.agent, _snapshot(inputs)
    if agent is None:
        return Evidence(key="no-agent")
    if snapshot is None or agent.received_at is None:
        return Evidence(key="agent-silent", values={"error": agent.error or ""})
    if now - agent.received_at > limits.stale_after:
        return Evidence(key="agent-silent", values={"since": agent.received_at, "error": agent.error or ""})
    if snapshot.gpu is not None:
        return None
    return _no_gpu_reason(next((fact for fact in snapshot.collectors if fact.name == "gpu"), None))


def _no_gpu_reason(collector: CollectorFact | None) -> Evidence:
    if collector is None:
        return Evidence(key="collector-disabled")
    if collector.hung_since is not None:
        return Evidence(key="driver-hung", values={"since": collector.hung_since})
    if collector.outcome == "absent":
        return Evidence(key="no-driver", values={"message": collector.message or ""})
    return Evidence(key="collector-failed", values={"message": collector.message or ""})


def _xids(snapshot: NodeSnapshot | None) -> dict[str | None, list[XidEvent]]:
    by_gpu: defaultdict[str | None, list[XidEvent]] = defaultdict(list)
    for xid in snapshot.xid.recent if snapshot and snapshot.xid else ():
        by_gpu[xid.gpu_uuid].append(xid)
    return by_gpu


def _gpu_view(context: _NodeContext, gpu: GpuFact, memory: GpuMemory | None) -> GpuView:
    inputs, blind, now = context.inputs, context.blind, context.now
    claimed = context.claims.get(gpu.uuid or "", NO_CLAIMS)
    idle_since = None if blind else _idle_since(gpu, memory, claimed.claims, now)
    known = GpuInput(
        gpu=gpu,
        now=now,
        limits=context.limits,
        claims=claimed.claims,
        held=claimed.held,
        xids=context.xids.get(gpu.uuid, ()),
        idle_since=idle_since,
        processes_known=context.processes_known,
        blind=blind,
        skew=context.skew,
    )
    state, evidence = decide_state(known)
    return GpuView(
        node=inputs.name,
        state=state,
        index=gpu.index,
        uuid=gpu.uuid,
        model=gpu.model or _label_model(inputs),
        since=min(memory.since, now) if memory and memory.state is state else now,
        idle_since=idle_since,
        holders=claimed.holders,
        pids=claimed.pids,
        evidence=evidence,
        disagreements=claimed.disagreements,
        utilization_ratio=None if blind else gpu.utilization_ratio,
        memory_used_bytes=None if blind else gpu.memory_used_bytes,
        memory_total_bytes=gpu.memory_total_bytes,
        temperature_celsius=None if blind else gpu.temperature_celsius,
        power_watts=None if blind else gpu.power_watts,
        power_limit_watts=None if blind else gpu.power_limit_watts,
    )


def _processes_known(snapshot: NodeSnapshot) -> bool:
    """Whether the list of processes is complete: only then does memory in use belong to no process."""
    collector = next((fact for fact in snapshot.collectors if fact.name == "gpu_processes"), None)
    return snapshot.gpu_processes is not None and (collector is None or collector.message is None)


def _skew(inputs: NodeInputs) -> float:
    """Our clock minus the node's. Small differences are network latency."""
    if inputs.agent is None or inputs.agent.snapshot is None or inputs.agent.received_at is None:
        return 0.0
    skew = inputs.agent.received_at - inputs.agent.snapshot.at
    return skew if abs(skew) > MAX_LATENCY_SECONDS else 0.0


def _idle_since(gpu: GpuFact, memory: GpuMemory | None, claims: Sequence[GpuClaim], now: float) -> float | None:
    """Start of idleness: no kernel in any of the driver's samples, and no memory traffic.

    A GPU that was idle before its first live holder started is idle since that start; before, no one could use it.
    """
    activity = (gpu.utilization_peak_ratio, gpu.utilization_ratio, gpu.memory_activity_ratio)
    if any(activity) or activity == (None, None, None):
        return None
    since = min(memory.idle_since, now) if memory and memory.idle_since is not None else now
    starts = [claim.pod.started_at for claim in claims if claim.fate is PodFate.LIVE and claim.pod]
    return min(now, max(since, min((start for start in starts if start is not None), default=since)))


def _label_model(inputs: NodeInputs) -> str | None:
    labels = inputs.node.labels if inputs.node else {}
    return next((labels[name] for name in MODEL_LABELS if name in labels), None)


def _node_view(inputs: NodeInputs, gpus: tuple[GpuView, ...], blind: Evidence | None, now: float) -> NodeView:
    node, agent, snapshot = inputs.node, inputs.agent, _snapshot(inputs)
    whole = _counts_whole_gpus(inputs)
    requested = round(sum(pod.requests.get(inputs.resource, 0) for pod in inputs.pods)) if whole or not node else 0
    allocatable = int(node.allocatable.get(inputs.resource, 0)) if node and whole else None
    gpu_count = len(snapshot.gpu.gpus) if snapshot and snapshot.gpu and blind is None else None
    silent = blind is not None and blind.key == "agent-silent"
    bound = {pod.uid for pod in inputs.pods}
    return NodeView(
        name=inputs.name,
        model=next((gpu.model for gpu in gpus if gpu.model), _label_model(inputs)),
        ready=node.ready if node else None,
        schedulable=bool(node.ready) and not node.unschedulable if node else False,
        in_kubernetes=node is not None,
        has_agent=agent is not None,
        heard_at=agent.received_at if agent else None,
        silent_since=(agent.silent_since or agent.received_at or now) if agent and silent else None,
        silent_why=agent.error if agent and silent else None,
        capacity=int(node.capacity.get(inputs.resource, 0)) if node and whole else None,
        allocatable=allocatable,
        requested=requested,
        cards=gpu_count,
        free=None if _is_unseen(node, blind) else _free(allocatable, requested, gpus, gpu_count, bound),
        shares=node_shares(node, inputs.pods, inputs.resource, whole=whole) if node else (),
        disagreements=_count_disagreements(node if whole else None, inputs.resource, requested, gpu_count, gpus),
    )


def _counts_whole_gpus(inputs: NodeInputs) -> bool:
    """Whether Kubernetes counts whole GPUs on the node, not shares of them."""
    node, snapshot = inputs.node, _snapshot(inputs)
    if node is None or not offers_whole_gpus(node, inputs.resource):
        return False
    cards = len(snapshot.gpu.gpus) if snapshot and snapshot.gpu else 0
    replicas = any(device.replica is not None for device in snapshot.pod_devices or ()) if snapshot else False
    return not replicas or not counts_slots(node.capacity.get(inputs.resource, 0.0), cards)


def _is_unseen(node: NodeFact | None, blind: Evidence | None) -> bool:
    """Whether nothing is known about the GPUs of a node that should be known: it is down, or its agent is silent."""
    return (node is not None and not node.ready) or (blind is not None and blind.key in OUTAGES)


def _free(
    allocatable: int | None, requested: int, gpus: tuple[GpuView, ...], gpu_count: int | None, bound: set[str]
) -> int | None:
    """GPUs that the scheduler would still allocate, less those held without its knowledge.

    If Kubernetes counts shares, GPUs without a holder are free. A count above that of the driver stands alone.
    """
    if allocatable is None:
        return sum(gpu.state is GpuState.FREE for gpu in gpus) if gpu_count is not None else None
    free = max(0, allocatable - requested)
    if gpu_count is None or allocatable > gpu_count:
        return free
    taken = sum(_is_taken(gpu, bound) for gpu in gpus)
    return max(0, min(free, allocatable - requested - taken))


def _is_taken(gpu: GpuView, bound: set[str]) -> bool:
    """Whether a GPU without a live holder cannot be given to a pod: for its state, or the claim of a pod that is gone.

    The kubelet takes back what it allocated to such a pod; a claim holds it until it is released.
    """
    if has_live_holder(gpu):
        return False
    claimed = any(RESOURCE_CLAIM in holder.by and holder.pod_uid not in bound for holder in gpu.holders)
    return claimed or gpu.state in UNAVAILABLE_STATES


def _count_disagreements(
    node: NodeFact | None, resource: str, requested: int, gpu_count: int | None, gpus: tuple[GpuView, ...]
) -> tuple[str, ...]:
    if node is None:
        return ()
    capacity, allocatable = int(node.capacity.get(resource, 0)), int(node.allocatable.get(resource, 0))
    held = sum(has_live_holder(gpu) for gpu in gpus)
    checks = {
        "capacity-above-cards": gpu_count is not None and capacity > 0 and gpu_count < capacity,
        "allocatable-below-capacity": allocatable < capacity,
        "requested-above-held": gpu_count is not None and capacity <= gpu_count and requested > held,
        "held-above-requested": gpu_count is not None and capacity <= gpu_count and requested < held,
    }
    return tuple(name for name, applies in checks.items() if applies)
