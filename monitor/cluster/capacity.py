"""Free GPUs by model, and queues: sums over the nodes and pods of one view, so that they agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from monitor.facts.cluster import FreeView, NodeView, QueueView
from monitor.facts.gpu_requests import renamed, share_amounts, whole_gpus
from monitor.facts.gpu_resources import resource_kind
from monitor.facts.kube import Amounts
from monitor.facts.queues import QueueFact

UNKNOWN_MODEL = "unknown"
QueueTotals = tuple[Amounts, Amounts]  # allocated to pods, and waited for, by resource


# What of a node determines the free GPUs of its model, besides its name.
counted_for_free = attrgetter("model", "allocatable", "cards", "free", "schedulable", "in_kubernetes")


def free_by_model(nodes: Iterable[NodeView]) -> tuple[FreeView, ...]:
    """Free GPUs of each model, in total and on one node. Only schedulable nodes count."""
    by_model: defaultdict[str, list[NodeView]] = defaultdict(list)
    for node in nodes:
        if node.allocatable or node.cards:
            by_model[node.model or UNKNOWN_MODEL].append(node)
    return tuple(_free_view(model, group) for model, group in sorted(by_model.items()))


def _free_view(model: str, nodes: Sequence[NodeView]) -> FreeView:
    on = {node.name: node.free for node in nodes if node.free and (node.schedulable or not node.in_kubernetes)}
    return FreeView(
        model=model,
        total=sum(node.allocatable if node.allocatable is not None else node.cards or 0 for node in nodes),
        free=sum(on.values()),
        largest_on_one_node=max(on.values(), default=0),
        on=on,
    )


def queue_views(
    totals: Mapping[tuple[str, str], QueueTotals], queues: Iterable[QueueFact], resource: str, counted_as: str
) -> tuple[QueueView, ...]:
    """Queues that Kubernetes knows or that pods name, with what is in use and waited for (`totals`).

    A LocalQueue is local to its namespace; any other name is the same queue in all namespaces. `counted_as`: what one
    GPU of a limit is (`monitor.facts.gpu_nodes`).
    """
    known = {_full_name(queue): queue for queue in queues}
    sums: defaultdict[str, QueueTotals] = defaultdict(lambda: ({}, {}))
    for (namespace, queue), (used, waiting) in totals.items():
        local = f"{namespace}/{queue}"
        name = local if local in known else queue
        sums[name] = (_sum(sums[name][0], used), _sum(sums[name][1], waiting))
    return tuple(
        _queue_view(name, *sums.get(name, ({}, {})), known.get(name), resource, counted_as)
        for name in sorted(sums.keys() | known.keys())
    )


def _sum(one: Amounts, other: Amounts) -> Amounts:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in one | other}


def _full_name(queue: QueueFact) -> str:
    return f"{queue.namespace}/{queue.name}" if queue.kind == "LocalQueue" else queue.name


def _queue_view(
    name: str, used: Amounts, waiting: Amounts, queue: QueueFact | None, resource: str, counted_as: str
) -> QueueView:
    known = {each: limit for each, limit in queue.capacity.items() if resource_kind(each)} if queue else {}
    limits = renamed(known, counted_as)
    capacity, used_gpus = limits.get(resource), whole_gpus(used, resource)
    return QueueView(
        name=name,
        used=used_gpus,
        waiting=whole_gpus(waiting, resource),
        capacity=capacity,
        free=max(0.0, capacity - used_gpus) if capacity is not None else None,
        state=queue.state if queue else None,
        used_shares=share_amounts(used, resource),
        waiting_shares=share_amounts(waiting, resource),
        capacity_shares=share_amounts(limits, resource),
    )
