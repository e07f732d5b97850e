"""A view of the cluster as tables of text, for the terminal and the page alike. Pure."""

from __future__ import annotations

import time
from collections import Counter

from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView
from monitor.overview import Rows, Table, make_table
from monitor.units import format_duration, format_ratio, format_size

# What needs somebody's attention comes first.
URGENCY = tuple(GpuState)
SHOWN = 200


def headline(view: ClusterView) -> str:
    """Given a view, return one line that says how the cluster fares."""
    states = Counter(gpu.state.value for gpu in view.gpus)
    gpus = ", ".join(f"{states[state]} {state}" for state in GpuState if states[state]) or "none seen"
    at = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(view.at))
    nodes = "1 node" if len(view.nodes) == 1 else f"{len(view.nodes)} nodes"
    return f"{at}, {nodes}, {len(view.gpus)} GPUs: {gpus}"


def troubled(view: ClusterView) -> bool:
    """Return whether a card or a source needs somebody's attention."""
    fine = (GpuState.FREE, GpuState.BUSY)
    return any(gpu.state not in fine for gpu in view.gpus) or any(not source.ok for source in view.sources)


def tables(view: ClusterView) -> tuple[Table, ...]:
    """Given a view, return what to show of it."""
    sometimes = (_missing(view), _attention(view), _pending(view), _queues(view), _users(view))
    return (_nodes(view), *(table for table in sometimes if table.rows))


def _missing(view: ClusterView) -> Table:
    rows: Rows = [
        (
            source.name,
            source.why or "",
            "" if source.since is None else format_duration(max(0.0, view.at - source.since)),
        )
        for source in view.sources
        if not source.ok
    ]
    return make_table("Not seen", "what | why | for", rows)


def _nodes(view: ClusterView) -> Table:
    cards: dict[str, list[GpuView]] = {}
    for gpu in view.gpus:
        cards.setdefault(gpu.node, []).append(gpu)
    rows: Rows = [
        (
            node.name,
            node.model,
            _node_state(node, view.at),
            None if node.free is None else str(node.free),
            str(node.allocatable if node.allocatable is not None else node.cards or 0),
            " ".join(f"{gpu.index}:{gpu.state.value}" for gpu in cards.get(node.name, ())),
        )
        for node in view.nodes
    ]
    note = "no node is known: neither Kubernetes nor an agent answers"
    return make_table("Nodes", "node | model | state | free | GPUs | cards", rows[:SHOWN], note)


def _node_state(node: NodeView, now: float) -> str:
    if node.silent_since is not None:
        return f"agent silent for {format_duration(max(0.0, now - node.silent_since))}"
    if node.in_kubernetes and not node.ready:
        return "not ready"
    if node.in_kubernetes and not node.schedulable:
        return "cordoned"
    return "ok" if node.has_agent else "no agent"


def _attention(view: ClusterView) -> Table:
    """Cards that are neither free nor simply at work."""
    fine = (GpuState.FREE, GpuState.BUSY)
    odd = [gpu for gpu in view.gpus if gpu.state not in fine and gpu.evidence]
    odd.sort(key=lambda gpu: (URGENCY.index(gpu.state), gpu.node, gpu.index))
    rows: Rows = [
        (
            f"{gpu.node}/{gpu.index}",
            gpu.state.value,
            "" if gpu.since is None else format_duration(max(0.0, view.at - gpu.since)),
            _holders(gpu),
            "; ".join(_evidence(gpu)),
        )
        for gpu in odd
    ]
    return make_table("GPUs that need attention", "GPU | state | for | held by | because", rows[:SHOWN])


def _holders(gpu: GpuView) -> str:
    return ", ".join(f"{h.user or '?'} ({h.namespace or '?'}/{h.pod or h.pod_uid})" for h in gpu.holders)


def _evidence(gpu: GpuView) -> list[str]:
    return [
        f"{each.what} " + " ".join(f"{key}={value}" for key, value in each.values.items() if value != "")
        for each in gpu.evidence
    ]


def _pending(view: ClusterView) -> Table:
    waiting = [pod for pod in view.pods if pod.node is None and pod.phase == "Pending"]
    waiting.sort(key=lambda pod: pod.created_at or 0.0)
    rows: Rows = [
        (
            f"{pod.namespace}/{pod.name}",
            pod.identity.user,
            pod.identity.queue or "",
            f"{pod.requested_gpus:g}",
            "" if pod.created_at is None else format_duration(max(0.0, view.at - pod.created_at)),
            f"gpuwarden why -n {pod.namespace} {pod.name}",
        )
        for pod in waiting
    ]
    return make_table("Waiting", "pod | user | queue | GPUs | for | why", rows[:SHOWN])


def _queues(view: ClusterView) -> Table:
    rows: Rows = [
        (q.name, q.state or "", f"{q.used:g}", f"{q.waiting:g}", "" if q.free is None else f"{q.free:g}")
        for q in view.queues
    ]
    return make_table("Queues", "queue | state | GPUs used | GPUs waiting | free", rows[:SHOWN])


def _users(view: ClusterView) -> Table:
    busiest = sorted(view.users.items(), key=lambda entry: (-entry[1].gpus, entry[0]))
    rows: Rows = [
        (
            user,
            f"{use.gpus:g}",
            None if use.gpu_utilization_ratio is None else format_ratio(use.gpu_utilization_ratio),
            None if use.gpu_memory_bytes is None else format_size(use.gpu_memory_bytes),
            None if use.cpu_cores is None else f"{use.cpu_cores:.1f}",
            None if use.memory_bytes is None else format_size(use.memory_bytes),
            None if use.shm_bytes is None else format_size(use.shm_bytes),
            None if use.disk_bytes is None else format_size(use.disk_bytes),
        )
        for user, use in busiest
    ]
    return make_table("Users", "user | GPUs | util | GPU memory | CPU cores | memory | shm | disk", rows[:SHOWN])
