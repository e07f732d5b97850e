"""Free GPUs by model, and queues: sums over the nodes and pods of one view, so that they agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from monitor.facts.cluster import FreeView, NodeView, QueueView
from monitor.facts.kube import QueueFact

UNKNOWN_MODEL = "unknown"


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
    totals: Mapping[tuple[str, str], tuple[float, float]], queues: Iterable[QueueFact], resource: str
) -> tuple[QueueView, ...]:
    """Queues that Kubernetes knows or that pods name, with the GPUs in use and waited for (`totals`).

    A LocalQueue is local to its namespace; any other name is the same queue in all namespaces.
    """
    known = {_full_name(queue): queue for queue in queues}
    sums: defaultdict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for (namespace, queue), (used, waiting) in totals.items():
        local = f"{namespace}/{queue}"
        name = local if local in known else queue
        sums[name] = (sums[name][0] + used, sums[name][1] + waiting)
    return tuple(
        _queue_view(name, *sums.get(name, (0.0, 0.0)), known.get(name), resource)
        for name in sorted(sums.keys() | known.keys())
    )


def _full_name(queue: QueueFact) -> str:
    return f"{queue.namespace}/{queue.name}" if queue.kind == "LocalQueue" else queue.name


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
