"""Free cards by model, and queues: sums over the nodes and pods of one view, so that they agree. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from monitor.facts.cluster import FreeView, NodeView, PodView, QueueView
from monitor.facts.kube import QueueFact

UNKNOWN_MODEL = "unknown"


def free_by_model(nodes: Iterable[NodeView]) -> tuple[FreeView, ...]:
    """Given the nodes, return for each model what is free in total and on one node. Only schedulable nodes count."""
    by_model: defaultdict[str, list[NodeView]] = defaultdict(list)
    for node in nodes:
        if node.allocatable or node.cards:
            by_model[node.model or UNKNOWN_MODEL].append(node)
    return tuple(_free_view(model, group) for model, group in sorted(by_model.items()))


def _free_view(model: str, nodes: Sequence[NodeView]) -> FreeView:
    on = {n.name: n.free for n in nodes if n.free and (n.schedulable or not n.in_kubernetes)}
    return FreeView(
        model=model,
        total=sum(node.allocatable if node.allocatable is not None else node.cards or 0 for node in nodes),
        free=sum(on.values()),
        largest_on_one_node=max(on.values(), default=0),
        on=on,
    )


def queue_views(pods: Iterable[PodView], queues: Iterable[QueueFact], resource: str) -> tuple[QueueView, ...]:
    """Given pods and the queues that Kubernetes knows, return each queue's use. A label alone makes a queue too."""
    used: defaultdict[str, float] = defaultdict(float)
    waiting: defaultdict[str, float] = defaultdict(float)
    for pod in pods:
        if pod.identity.queue is not None and pod.requested_gpus:
            (used if pod.node else waiting)[pod.identity.queue] += pod.requested_gpus
    known = {queue.name: queue for queue in sorted(queues, key=lambda q: (q.name, q.uid))}
    names = sorted(used.keys() | waiting.keys() | known.keys())
    return tuple(_queue_view(name, used[name], waiting[name], known.get(name), resource) for name in names)


def _queue_view(name: str, used: float, waiting: float, queue: QueueFact | None, resource: str) -> QueueView:
    capacity = queue.capacity.get(resource) if queue else None
    return QueueView(
        name=name,
        used=used,
        waiting=waiting,
        capacity=capacity,
        free=max(0.0, capacity - used) if capacity is not None else None,
        state=queue.state if queue else None,
    )
