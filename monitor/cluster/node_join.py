"""One node: what its agent reports joined with what Kubernetes says. Pure, and independent of every other node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from monitor.cluster.gpu_state import Card, StateLimits, decide
from monitor.cluster.holders import Claim, Life, PodIndex, allocation_claim, merge_holders, process_claim
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Evidence, GpuState, GpuView, Identity, NodeView
from monitor.facts.gpu import GpuFact
from monitor.facts.kube import NodeFact, PodFact
from monitor.facts.node import CollectorFact, NodeSnapshot

MODEL_LABELS = ("nvidia.com/gpu.product", "gpu.nvidia.com/model", "aliyun.accelerator/nvidia_name")
BAD = (GpuState.FAULTY, GpuState.WEDGED, GpuState.ZOMBIE, GpuState.ORPHAN, GpuState.GHOST)


@dataclass(frozen=True)
class NodeInputs:
    """Everything about one node. `pods` are those bound to it that have not finished."""

    name: str
    agent: AgentFact | None = None
    node: NodeFact | None = None
    pods: tuple[PodFact, ...] = ()
    resource: str = "nvidia.com/gpu"


@dataclass(frozen=True)
class CardMemory:
    """What has to be remembered of a card from one view to the next."""

    state: GpuState
    since: float
    idle_since: float | None = None


Cards = Mapping[str, CardMemory]  # by "node/uuid", or "node#index" where no uuid is known


def join_node(
    inputs: NodeInputs,
    index: PodIndex,
    identities: Mapping[str, Identity],
    before: Cards,
    limits: StateLimits,
    now: float,
) -> tuple[NodeView, tuple[GpuView, ...]]:
    """Given a node and what its cards were like before, return how it is now."""
    blind = _blind(inputs, limits, now)
    views = []
    for gpu in _cards(inputs):
        claims = [] if blind else _claims(inputs, gpu, index, now)
        memory = before.get(card_key(inputs.name, gpu.uuid, gpu.index))
        views.append(_gpu_view(inputs, gpu, claims, memory, blind, identities, limits, now))
    return _node_view(inputs, tuple(views), blind, now), tuple(views)


def card_key(node: str, uuid: str | None, index: int) -> str:
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
        return Evidence(what="no-agent")
    if snapshot is None or agent.received_at is None:
        return Evidence(what="agent-silent", values={"error": agent.error or ""})
    if now - agent.received_at > limits.stale_after:
        return Evidence(what="agent-silent", values={"since": agent.received_at, "error": agent.error or ""})
    if snapshot.gpu is not None:
        return None
    return _why_no_gpu(next((fact for fact in snapshot.collectors if fact.name == "gpu"), None))


def _why_no_gpu(collector: CollectorFact | None) -> Evidence:
    if collector is None:
        return Evidence(what="collector-disabled")
    if collector.hung_since is not None:
        return Evidence(what="driver-hung", values={"since": collector.hung_since})
    if collector.outcome == "absent":
        return Evidence(what="no-driver", values={"message": collector.message or ""})
    return Evidence(what="collector-failed", values={"message": collector.message or ""})


def _claims(inputs: NodeInputs, gpu: GpuFact, index: PodIndex, now: float) -> list[Claim]:
    snapshot, agent = _snapshot(inputs), inputs.agent
    if snapshot is None or agent is None or gpu.uuid is None:
        return []
    heard_at = agent.received_at or 0.0
    ours = {gpu.uuid, *(mig.uuid for mig in gpu.mig)}
    claims = [process_claim(p, index, heard_at, now) for p in snapshot.gpu_processes or () if p.gpu_uuid == gpu.uuid]
    claims += [allocation_claim(d, index, heard_at, now) for d in snapshot.pod_devices or () if d.gpu_uuid in ours]
    return claims


def _gpu_view(
    inputs: NodeInputs,
    gpu: GpuFact,
    claims: list[Claim],
    memory: CardMemory | None,
    blind: Evidence | None,
    identities: Mapping[str, Identity],
    limits: StateLimits,
    now: float,
) -> GpuView:
    snapshot = _snapshot(inputs)
    idle_since = None if blind else _idle_since(gpu, memory, now)
    card = Card(
        gpu=gpu,
        now=now,
        limits=limits,
        claims=claims,
        xids=[x for x in snapshot.xid.recent if x.gpu_uuid == gpu.uuid] if snapshot and snapshot.xid else (),
        idle_since=idle_since,
        processes_known=snapshot is not None and _processes_known(snapshot),
        blind=blind,
        skew=_skew(inputs),
    )
    state, evidence = decide(card)
    return GpuView(
        node=inputs.name,
        state=state,
        index=gpu.index,
        uuid=gpu.uuid,
        model=gpu.model or _label_model(inputs),
        since=memory.since if memory and memory.state is state else now,
        idle_since=idle_since,
        holders=merge_holders(claims, identities),
        pids=tuple(sorted(claim.process.pid for claim in claims if claim.process)),
        evidence=evidence,
        disagreements=_disagreements(claims, inputs),
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


def _idle_since(gpu: GpuFact, memory: CardMemory | None, now: float) -> float | None:
    """Since when the card does nothing: no kernel in any of the driver's samples, and no memory traffic."""
    signs = (gpu.utilization_peak_ratio, gpu.utilization_ratio, gpu.memory_activity_ratio)
    if all(sign is None for sign in signs) or any(signs):
        return None
    return memory.idle_since if memory and memory.idle_since is not None else now


def _disagreements(claims: list[Claim], inputs: NodeInputs) -> tuple[str, ...]:
    """Return where the views of a card differ: the kubelet's books, the driver's processes, the pods' requests."""
    allocated = {claim.pod_uid for claim in claims if claim.process is None and claim.pod_uid}
    running = {claim.pod_uid for claim in claims if claim.process is not None and claim.pod_uid}
    bound = {pod.uid for pod in inputs.pods}
    found = set()
    if running - allocated and any(claim.process is None for claim in claims):
        found.add("process-of-another-pod")
    if running and not any(claim.process is None for claim in claims):
        found.add("process-without-allocation")
    if any(claim.process is None and claim.life is Life.DELETED for claim in claims):
        found.add("allocation-of-missing-pod")
    if any(claim.process is None and claim.life is Life.LIVE and claim.pod_uid not in bound for claim in claims):
        found.add("allocation-of-pod-elsewhere")
    return tuple(sorted(found))


def _label_model(inputs: NodeInputs) -> str | None:
    labels = inputs.node.labels if inputs.node else {}
    return next((labels[name] for name in MODEL_LABELS if name in labels), None)


def _node_view(inputs: NodeInputs, gpus: tuple[GpuView, ...], blind: Evidence | None, now: float) -> NodeView:
    node, agent, snapshot = inputs.node, inputs.agent, _snapshot(inputs)
    requested = round(sum(pod.requests.get(inputs.resource, 0) for pod in inputs.pods))
    allocatable = int(node.allocatable.get(inputs.resource, 0)) if node else None
    cards = len(snapshot.gpu.gpus) if snapshot and snapshot.gpu and blind is None else None
    silent = blind is not None and blind.what == "agent-silent"
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
    taken = sum(gpu.state in BAD and not any(holder.live for holder in gpu.holders) for gpu in gpus)
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
