"""One node: what its agent reports joined with what Kubernetes says. Pure, and independent of every other node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from monitor.cluster.gpu_state import GpuInput, StateLimits, decide_state
from monitor.cluster.holders import GpuClaim, PodFate, PodLookup, allocation_claim, merge_holders, process_claim
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Identity, NodeView
from monitor.facts.gpu import GpuFact, XidEvent
from monitor.facts.kube import NodeFact, PodFact
from monitor.facts.node import CollectorFact, NodeSnapshot
from monitor.facts.text import Evidence

MODEL_LABELS = ("nvidia.com/gpu.product", "gpu.nvidia.com/model", "aliyun.accelerator/nvidia_name")
UNAVAILABLE_STATES = (GpuState.FAULTY, GpuState.WEDGED, GpuState.ZOMBIE, GpuState.ORPHAN, GpuState.GHOST)


class NodeInputs(NamedTuple):
    """Everything about one node. `pods` are those bound to it that have not finished."""

    name: str
    agent: AgentFact | None = None
    node: NodeFact | None = None
    pods: tuple[PodFact, ...] = ()
    resource: str = "nvidia.com/gpu"


class GpuMemory(msgspec.Struct, frozen=True, gc=False):
    """What has to be remembered of a card from one view to the next."""

    state: GpuState
    since: float
    idle_since: float | None = None


GpuMemories = Mapping[str, GpuMemory]  # by "node/uuid", or "node#index" where no uuid is known


class _NodeContext(NamedTuple):
    """What is the same for all cards of a node. `claims` and `xids` are by the uuid of the card."""

    inputs: NodeInputs
    blind: Evidence | None
    claims: Mapping[str, list[GpuClaim]]
    xids: Mapping[str | None, list[XidEvent]]
    bound: frozenset[str]
    processes_known: bool
    skew: float
    identities: Mapping[str, Identity]
    limits: StateLimits
    now: float


def join_node(
    inputs: NodeInputs,
    index: PodLookup,
    identities: Mapping[str, Identity],
    before: GpuMemories,
    limits: StateLimits,
    now: float,
) -> tuple[NodeView, tuple[GpuView, ...]]:
    """Given a node and what its cards were like before, return how it is now."""
    blind, snapshot = _blind(inputs, limits, now), _snapshot(inputs)
    scene = _NodeContext(
        inputs,
        blind,
        {} if blind else _claims(inputs, index, now),
        _xids(snapshot),
        frozenset([pod.uid for pod in inputs.pods]),
        snapshot is not None and _processes_known(snapshot),
        _skew(inputs),
        identities,
        limits,
        now,
    )
    views = tuple(
        [_gpu_view(scene, gpu, before.get(gpu_memory_key(inputs.name, gpu.uuid, gpu.index))) for gpu in _cards(inputs)]
    )
    return _node_view(inputs, views, blind, now), views


def gpu_memory_key(node: str, uuid: str | None, index: int) -> str:
    """Return what a card is remembered by."""
    return f"{node}/{uuid}" if uuid else f"{node}#{index}"


def _snapshot(inputs: NodeInputs) -> NodeSnapshot | None:
    return inputs.agent.snapshot if inputs.agent else None


def _cards(inputs: NodeInputs) -> Sequence[GpuFact]:
    """Return the cards that the node has: as last reported, else as many as Kubernetes counts."""
    snapshot = _snapshot(inputs)
    if snapshot is not None and snapshot.gpu is not None:
        return snapshot.gpu.gpus
    capacity = int(inputs.node.capacity.get(inputs.resource, 0)) if inputs.node else 0
    return [GpuFact(index=index) for index in range(capacity)]


def _blind(inputs: NodeInputs, limits: StateLimits, now: float) -> Evidence | None:
    """Return why nothing can be said of the node's cards, or None."""
    agent, snapshot = inputs.agent, _snapshot(inputs)
    if agent is None:
        return Evidence(key="no-agent")
    if snapshot is None or agent.received_at is None:
        return Evidence(key="agent-silent", values={"error": agent.error or ""})
    if now - agent.received_at > limits.stale_after:
        return Evidence(key="agent-silent", values={"since": agent.received_at, "error": agent.error or ""})
    if snapshot.gpu is not None:
        return None
    return _why_no_gpu(next((fact for fact in snapshot.collectors if fact.name == "gpu"), None))


def _why_no_gpu(collector: CollectorFact | None) -> Evidence:
    if collector is None:
        return Evidence(key="collector-disabled")
    if collector.hung_since is not None:
        return Evidence(key="driver-hung", values={"since": collector.hung_since})
    if collector.outcome == "absent":
        return Evidence(key="no-driver", values={"message": collector.message or ""})
    return Evidence(key="collector-failed", values={"message": collector.message or ""})


def _claims(inputs: NodeInputs, index: PodLookup, now: float) -> dict[str, list[GpuClaim]]:
    """Return the claims to each card, by its uuid: those of processes first. A slice of a card (MIG) is the card's."""
    snapshot, agent = _snapshot(inputs), inputs.agent
    if snapshot is None or snapshot.gpu is None or agent is None:
        return {}
    heard_at = agent.received_at or 0.0
    claims: defaultdict[str, list[GpuClaim]] = defaultdict(list)
    for process in snapshot.gpu_processes or ():
        claims[process.gpu_uuid].append(process_claim(process, index, heard_at, now))
    cards = {gpu.uuid: gpu.uuid for gpu in snapshot.gpu.gpus}
    cards |= {mig.uuid: gpu.uuid for gpu in snapshot.gpu.gpus for mig in gpu.mig}
    for device in snapshot.pod_devices or ():
        card = cards.get(device.gpu_uuid) if device.gpu_uuid is not None else None
        if card is not None:
            claims[card].append(allocation_claim(device, index, heard_at, now))
    return claims


def _xids(snapshot: NodeSnapshot | None) -> dict[str | None, list[XidEvent]]:
    found: defaultdict[str | None, list[XidEvent]] = defaultdict(list)
    for xid in snapshot.xid.recent if snapshot and snapshot.xid else ():
        found[xid.gpu_uuid].append(xid)
    return found


def _gpu_view(scene: _NodeContext, gpu: GpuFact, memory: GpuMemory | None) -> GpuView:
    inputs, blind, now = scene.inputs, scene.blind, scene.now
    idle_since = None if blind else _idle_since(gpu, memory, now)
    claims = scene.claims.get(gpu.uuid, []) if gpu.uuid is not None else []
    card = GpuInput(
        gpu=gpu,
        now=now,
        limits=scene.limits,
        claims=claims,
        xids=scene.xids.get(gpu.uuid, ()),
        idle_since=idle_since,
        processes_known=scene.processes_known,
        blind=blind,
        skew=scene.skew,
    )
    state, evidence = decide_state(card)
    return GpuView(
        node=inputs.name,
        state=state,
        index=gpu.index,
        uuid=gpu.uuid,
        model=gpu.model or _label_model(inputs),
        since=min(memory.since, now) if memory and memory.state is state else now,
        idle_since=idle_since,
        holders=merge_holders(claims, scene.identities),
        pids=tuple(sorted([claim.process.pid for claim in claims if claim.process])),
        evidence=evidence,
        disagreements=_disagreements(claims, scene.bound),
        utilization_ratio=None if blind else gpu.utilization_ratio,
        memory_used_bytes=None if blind else gpu.memory_used_bytes,
        memory_total_bytes=gpu.memory_total_bytes,
    )


def _processes_known(snapshot: NodeSnapshot) -> bool:
    """Whether the list of processes is there and complete: only then is memory without a process nobody's."""
    told = next((fact for fact in snapshot.collectors if fact.name == "gpu_processes"), None)
    return snapshot.gpu_processes is not None and (told is None or told.message is None)


def _skew(inputs: NodeInputs) -> float:
    """How far the node's clock is behind ours. Small differences are the way the answer took."""
    if inputs.agent is None or inputs.agent.snapshot is None or inputs.agent.received_at is None:
        return 0.0
    skew = inputs.agent.received_at - inputs.agent.snapshot.at
    return skew if abs(skew) > 2.0 else 0.0


def _idle_since(gpu: GpuFact, memory: GpuMemory | None, now: float) -> float | None:
    """Since when the card does nothing: no kernel in any of the driver's samples, and no memory traffic."""
    signs = (gpu.utilization_peak_ratio, gpu.utilization_ratio, gpu.memory_activity_ratio)
    if any(signs) or signs == (None, None, None):
        return None
    return min(memory.idle_since, now) if memory and memory.idle_since is not None else now


def _disagreements(claims: Sequence[GpuClaim], bound: frozenset[str]) -> tuple[str, ...]:
    """Return where the views of a card differ: the kubelet's books, the driver's processes, the pods' requests."""
    running = {claim.pod_uid for claim in claims if claim.process is not None and claim.pod_uid}
    allocations = [claim for claim in claims if claim.process is None]
    if not allocations:
        return ("process-without-allocation",) if running else ()
    found = set()
    if not running <= {claim.pod_uid for claim in allocations}:
        found.add("process-of-another-pod")
    for claim in allocations:
        if claim.life is PodFate.DELETED:
            found.add("allocation-of-missing-pod")
        elif claim.life is PodFate.LIVE and claim.pod_uid not in bound:
            found.add("allocation-of-pod-elsewhere")
    return tuple(sorted(found)) if found else ()


def _label_model(inputs: NodeInputs) -> str | None:
    labels = inputs.node.labels if inputs.node else {}
    return next((labels[name] for name in MODEL_LABELS if name in labels), None)


def _node_view(inputs: NodeInputs, gpus: tuple[GpuView, ...], blind: Evidence | None, now: float) -> NodeView:
    node, agent, snapshot = inputs.node, inputs.agent, _snapshot(inputs)
    requested = round(sum(pod.requests.get(inputs.resource, 0) for pod in inputs.pods))
    allocatable = int(node.allocatable.get(inputs.resource, 0)) if node else None
    cards = len(snapshot.gpu.gpus) if snapshot and snapshot.gpu and blind is None else None
    silent = blind is not None and blind.key == "agent-silent"
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
        capacity=int(node.capacity.get(inputs.resource, 0)) if node else None,
        allocatable=allocatable,
        requested=requested,
        cards=cards,
        free=_free(allocatable, requested, gpus, cards),
        disagreements=_count_disagreements(node, inputs.resource, requested, cards, gpus),
    )


def _free(allocatable: int | None, requested: int, gpus: tuple[GpuView, ...], cards: int | None) -> int | None:
    """What the scheduler would give away, less the cards that somebody sits on whom it does not know of.

    Where one card is handed out many times over (time slicing) or in slices (MIG), cards and devices are different
    things and the scheduler's figure stands alone.
    """
    if allocatable is None:
        return sum(gpu.state is GpuState.FREE for gpu in gpus) if cards is not None else None
    free = max(0, allocatable - requested)
    if cards is None or allocatable > cards:
        return free
    taken = sum(gpu.state in UNAVAILABLE_STATES and not any(holder.live for holder in gpu.holders) for gpu in gpus)
    return max(0, min(free, allocatable - requested - taken))


def _count_disagreements(
    node: NodeFact | None, resource: str, requested: int, cards: int | None, gpus: tuple[GpuView, ...]
) -> tuple[str, ...]:
    if node is None:
        return ()
    capacity, allocatable = int(node.capacity.get(resource, 0)), int(node.allocatable.get(resource, 0))
    held = sum(any(holder.live for holder in gpu.holders) for gpu in gpus)
    checks = {
        "capacity-above-cards": cards is not None and capacity > 0 and cards < capacity,
        "allocatable-below-capacity": allocatable < capacity,
        "requested-above-held": cards is not None and capacity <= cards and requested > held,
        "held-above-requested": cards is not None and capacity <= cards and requested < held,
    }
    return tuple(name for name, found in checks.items() if found)
