"""Not enough free GPUs, on one node or in the cluster: who holds them, and which could be released."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

from monitor.explain.fit import (
    NodeFit,
    amount_in_units,
    amount_in_words,
    gpu_request,
    gpu_resource,
    gpus_in_words,
    requested_gpus,
)
from monitor.explain.keys import Key
from monitor.explain.model import PendingCause, PodDiagnosis, PodStatus, pending_diagnosis
from monitor.explain.placement import ObstacleKind
from monitor.facts.cluster import GpuState
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_resources import Unit, resource_kind
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

MAX_NAMED_NODES = 5
MAX_NAMED_HOLDERS = 3
STUCK_STATES = (GpuState.ZOMBIE, GpuState.WEDGED, GpuState.ORPHAN, GpuState.GHOST, GpuState.PHANTOM)


def explain(pod: PodFact, fits: Sequence[NodeFit], facts: ClusterFacts) -> PodDiagnosis:
    """Diagnosis of a pod that fits nowhere because GPUs are taken; several nodes together may have enough."""
    needs = requested_gpus(pod, facts)
    usable = [fit for fit in fits if fit.usable and fit.total]
    free = sum(fit.free for fit in usable)
    if free >= needs and max(fit.free for fit in usable) < needs:
        return _spread(pod, usable, fits, facts)
    total = sum(fit.total for fit in usable)
    values: dict[str, Value] = {"needs": gpus_in_words(pod, facts), "free": amount_in_units(pod, free, facts)}
    values["total"] = amount_in_units(pod, total, facts)
    unused = tuple(_idle(usable, facts))
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.NOT_ENOUGH_GPUS,
        Text(Key.NOT_ENOUGH_GPUS, values | {"nodes": len(usable)}),
        evidence=(
            *_holders(pod, usable, facts),
            *_leaving(pod, usable, facts),
            *unused,
            *excluded_nodes_with_room(pod, fits, facts),
        ),
        advice=tuple(_wait_or_release(unused, needs)),
    )


def too_large(pod: PodFact, fits: Sequence[NodeFit], facts: ClusterFacts) -> PodDiagnosis:
    """Diagnosis of a pod that requests more GPUs than any node has: it can never run as specified."""
    resource = gpu_resource(pod, facts)
    largest = max(fits, key=lambda fit: fit.total)
    if largest.total == 0:
        values: dict[str, Value] = {"resource": resource}
        return pending_diagnosis(PendingCause.NOT_ENOUGH_GPUS, Key.NO_GPU_NODES, Key.NO_GPU_NODES_ADVICE, values)
    usable = [fit for fit in fits if fit.usable and fit.total]
    values = {
        "needs": gpus_in_words(pod, facts),
        "largest": amount_in_units(pod, largest.total, facts),
        "node": largest.node.name,
        "free": amount_in_units(pod, sum(fit.free for fit in usable), facts),
    }
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.NO_SINGLE_NODE_FITS,
        Text(Key.NEVER_ON_ONE_NODE, values),
        evidence=tuple(_free_map(pod, usable, facts)),
        advice=(_distribute(pod, usable, facts) or _smaller(pod, largest.total, facts),),
    )


def _spread(pod: PodFact, usable: Sequence[NodeFit], fits: Sequence[NodeFit], facts: ClusterFacts) -> PodDiagnosis:
    """The cluster has enough free GPUs but no single node does: the job should run on several nodes."""
    needs = gpus_in_words(pod, facts)
    most = max(usable, key=lambda fit: fit.free)
    values: dict[str, Value] = {
        "needs": needs,
        "most": amount_in_units(pod, most.free, facts),
        "node": most.node.name,
        "free": amount_in_units(pod, sum(fit.free for fit in usable), facts),
        "nodes": sum(fit.free > 0 for fit in usable),
    }
    workers = _distribute(pod, usable, facts)
    advice = [workers] if workers is not None else []
    return PodDiagnosis(
        PodStatus.PENDING,
        PendingCause.NO_SINGLE_NODE_FITS,
        Text(Key.NO_SINGLE_NODE_FITS, values),
        evidence=(
            *_free_map(pod, usable, facts),
            *_leaving(pod, usable, facts),
            *_idle(usable, facts),
            *excluded_nodes_with_room(pod, fits, facts),
        ),
        advice=(*advice, Text(Key.OR_WAIT_FOR_NODE, {"needs": needs})),
    )


def _distribute(pod: PodFact, usable: Sequence[NodeFit], facts: ClusterFacts) -> Text | None:
    """Advice to run on several nodes, if workers with fewer GPUs each would start now."""
    plan = _layout(usable, requested_gpus(pod, facts), facts) if _is_divisible(pod, facts) else None
    if plan is None:
        return None
    values: dict[str, Value] = {"workers": plan[0], "count": plan[1], "each": amount_in_words(pod, plan[1], facts)}
    job = facts.identity(pod).job
    peers = (p for p in facts.pods if p.namespace == pod.namespace and facts.identity(p).job == job)
    several = job and len(list(islice(peers, 2))) > 1
    return Text(Key.SMALLER_WORKERS if several else Key.DISTRIBUTE, values)


def _is_divisible(pod: PodFact, facts: ClusterFacts) -> bool:
    """Whether the pod requests whole devices, which workers on several nodes could use as well."""
    kind = resource_kind(next(iter(gpu_request(pod, facts)), facts.resource))
    return kind is None or kind.unit in (Unit.GPU, Unit.DEVICE)


def _smaller(pod: PodFact, largest: int, facts: ClusterFacts) -> Text:
    if _is_divisible(pod, facts):
        return Text(Key.DISTRIBUTE_LATER, {"largest": amount_in_words(pod, largest, facts)})
    return Text(Key.WAIT_OR_ASK_LESS)


def _layout(usable: Sequence[NodeFit], needs: int, facts: ClusterFacts) -> tuple[int, int] | None:
    """The fewest (workers, GPUs per worker) that would start now, on a single GPU model if possible."""
    by_model: defaultdict[str, list[int]] = defaultdict(list)
    for fit in usable:
        seen = facts.view_of_node.get(fit.node.name)
        by_model[(seen.model if seen else None) or ""].append(fit.free)
    groups = [free for free in by_model.values() if sum(free) >= needs] or [[fit.free for fit in usable]]
    plans = [plan for free in groups if (plan := _workers(free, needs))]
    return min(plans, default=None)


def _workers(free: Sequence[int], needs: int) -> tuple[int, int] | None:
    for workers in range(2, needs + 1):
        size, rest = divmod(needs, workers)
        if rest == 0 and sum(gpus // size for gpus in free) >= workers:
            return workers, size
    return None


def _free_map(pod: PodFact, usable: Sequence[NodeFit], facts: ClusterFacts) -> Iterable[Text]:
    """Nodes with free GPUs, most first."""
    with_free = sorted((fit for fit in usable if fit.free), key=lambda fit: (-fit.free, fit.node.name))
    if with_free:
        named = with_free[:MAX_NAMED_NODES]
        names = ", ".join(f"{fit.node.name} ({amount_in_units(pod, fit.free, facts)})" for fit in named)
        yield Text(Key.FREE_MAP, {"nodes": names + (" …" if len(with_free) > MAX_NAMED_NODES else "")})


def _holders(pod: PodFact, usable: Sequence[NodeFit], facts: ClusterFacts) -> Iterable[Text]:
    """Users holding most of the GPUs that this pod could use."""
    resource = gpu_resource(pod, facts)
    held: Counter[str] = Counter()
    for fit in usable:
        for other in facts.bound.get(fit.node.name, ()):
            if count := round(other.requests.get(resource, 0.0)):
                held[facts.user(other)] += count
    most = held.most_common(MAX_NAMED_HOLDERS)
    top = [f"{user} ({amount_in_units(pod, count, facts)})" for user, count in most if count]
    if top:
        yield Text(Key.TOP_HOLDERS, {"holders": ", ".join(top)})


def _leaving(pod: PodFact, usable: Sequence[NodeFit], facts: ClusterFacts) -> Iterable[Text]:
    """GPUs that terminating pods will release."""
    resource = gpu_resource(pod, facts)
    pods = [p for fit in usable for p in facts.bound.get(fit.node.name, ()) if p.deletion_at is not None]
    count = round(sum(p.requests.get(resource, 0.0) for p in pods))
    if count:
        names = ", ".join(f"{p.namespace}/{p.name}" for p in pods[:MAX_NAMED_HOLDERS] if p.requests.get(resource))
        yield Text(Key.GPUS_LEAVING, {"count": amount_in_words(pod, count, facts), "pods": names})


def _idle(usable: Sequence[NodeFit], facts: ClusterFacts) -> Iterable[Text]:
    """GPUs held but idle, or stuck with processes or pods that no longer exist."""
    not_in_use = [
        gpu
        for fit in usable
        for gpu in facts.gpus_by_node.get(fit.node.name, ())
        if gpu.state is not GpuState.BUSY and gpu.state is not GpuState.FREE
    ]
    idle: Counter[str] = Counter()
    for gpu in not_in_use:
        if gpu.state is GpuState.IDLE_HELD and gpu.holders:
            idle[gpu.holders[0].user or gpu.holders[0].namespace or "?"] += 1
    if idle:
        top = ", ".join(f"{user} ({count})" for user, count in idle.most_common(MAX_NAMED_HOLDERS))
        yield Text(Key.GPUS_IDLE, {"count": sum(idle.values()), "holders": top})
    stuck = Counter(gpu.node for gpu in not_in_use if gpu.state in STUCK_STATES)
    if stuck:
        where = ", ".join(f"{node} ({count})" for node, count in stuck.most_common(MAX_NAMED_HOLDERS))
        yield Text(Key.GPUS_STUCK, {"count": sum(stuck.values()), "nodes": where})


def _wait_or_release(unused: Iterable[Text], needs: int) -> Iterable[Text]:
    keys = {text.key for text in unused}
    if Key.GPUS_IDLE in keys:
        yield Text(Key.RELEASE_IDLE)
    if Key.GPUS_STUCK in keys:
        yield Text(Key.RELEASE_STUCK)
    yield Text(Key.WAIT_OR_ASK_LESS if needs > 1 else Key.WAIT)


def excluded_nodes_with_room(pod: PodFact, fits: Sequence[NodeFit], facts: ClusterFacts) -> Iterable[Text]:
    """Nodes with room for the pod that it may not use, by exclusion."""
    keys = {
        ObstacleKind.CORDONED: Key.ROOM_CORDONED,
        ObstacleKind.NOT_READY: Key.ROOM_NOT_READY,
        ObstacleKind.TAINT: Key.ROOM_TAINTED,
        ObstacleKind.SELECTOR: Key.ROOM_NOT_SELECTED,
    }
    with_room = [fit for fit in fits if fit.total > 0 and not fit.usable and not fit.lacks_gpus]
    for kind, key in keys.items():
        excluded = [fit for fit in with_room if kind in fit.exclusions()]
        if excluded and pod.requests:
            details = {obstacle.detail for fit in excluded for obstacle in fit.obstacles if obstacle.kind is kind}
            named = excluded[:MAX_NAMED_NODES]
            nodes = ", ".join(f"{fit.node.name} ({amount_in_units(pod, fit.free, facts)})" for fit in named)
            yield Text(key, {"nodes": nodes, "detail": ", ".join(sorted(details)[:MAX_NAMED_HOLDERS])})
