"""A view of the cluster as tables of text, for the terminal and the page alike. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from monitor.base.units import format_duration, format_ratio, format_size, utc_timestamp
from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView
from monitor.facts.text import Evidence
from monitor.present.node import Rows, TextTable, make_table

FINE = (GpuState.FREE, GpuState.BUSY)
# What needs somebody's attention comes first; a silent node's cards come last, or they would hide all others.
URGENCY = (*(state for state in GpuState if state not in (GpuState.UNKNOWN, *FINE)), GpuState.UNKNOWN)
SHOWN = 200
NODES_SHOWN = 8


def headline(view: ClusterView) -> str:
    """Given a view, return one line that says how the cluster fares."""
    states = Counter(gpu.state.value for gpu in view.gpus)
    gpus = ", ".join(f"{states[state]} {state}" for state in GpuState if states[state]) or "none seen"
    at = f"{utc_timestamp(view.at)} UTC"
    return f"{at}, {_number(len(view.nodes), 'node')}, {_number(len(view.gpus), 'GPU')}: {gpus}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def needs_attention(view: ClusterView) -> bool:
    """Return whether a card or a source needs somebody's attention."""
    return any(gpu.state not in FINE for gpu in view.gpus) or any(not source.ok for source in view.sources)


def tables(view: ClusterView) -> tuple[TextTable, ...]:
    """Given a view, return what to show of it."""
    sometimes = (_missing(view), _attention(view), _pending(view), _free(view), _queues(view), _users(view))
    return (_nodes(view), *(table for table in sometimes if table.rows))


def _table(title: str, columns: str, rows: Rows, note: str = "") -> TextTable:
    """Return a table of as many rows as somebody may read, whose title says if there are more."""
    more = f" (the first {SHOWN} of {len(rows)})" if len(rows) > SHOWN else ""
    return make_table(title + more, columns, rows[:SHOWN], note)


def _for(view: ClusterView, since: float | None) -> str:
    """Return for how long something lasts; nothing if nobody knows."""
    return "" if since is None else format_duration(max(0.0, view.at - since))


def _missing(view: ClusterView) -> TextTable:
    rows: Rows = [(each.name, each.why or "", _for(view, each.since)) for each in view.sources if not each.ok]
    return _table("Not seen", "what | why | for", rows)


def _nodes(view: ClusterView) -> TextTable:
    cards: dict[str, list[GpuView]] = {}
    for gpu in view.gpus:
        cards.setdefault(gpu.node, []).append(gpu)
    rows: Rows = [
        (
            node.name,
            node.model,
            _node_state(node, view),
            _count(node.free),
            _count(node.cards if node.allocatable is None else node.allocatable),
            " ".join(f"{gpu.index}:{gpu.state.value}" for gpu in cards.get(node.name, ())),
        )
        for node in view.nodes
    ]
    note = "no node is known: neither Kubernetes nor an agent answers"
    return _table("Nodes", "node | model | state | free | GPUs | cards", rows, note)


def _count(number: int | None) -> str | None:
    return None if number is None else str(number)


def _node_state(node: NodeView, view: ClusterView) -> str:
    words = []
    if node.in_kubernetes and not node.ready:
        words.append("not ready")
    elif node.in_kubernetes and not node.schedulable:
        words.append("cordoned")
    if node.silent_since is not None:
        words.append(f"agent silent for {_for(view, node.silent_since)}")
    elif not node.has_agent:
        words.append("no agent")
    return ", ".join(words) or "ok"


def _attention(view: ClusterView) -> TextTable:
    """Cards that are neither free nor simply at work."""
    odd = [gpu for gpu in view.gpus if gpu.state not in FINE]
    odd.sort(key=lambda gpu: (URGENCY.index(gpu.state), gpu.node, gpu.index))
    rows: Rows = [
        (
            f"{gpu.node}/{gpu.index}",
            gpu.state.value,
            _for(view, gpu.since),
            _holders(gpu),
            "; ".join(_because(each, view) for each in gpu.evidence),
        )
        for gpu in odd
    ]
    return _table("GPUs that need attention", "GPU | state | for | held by | because", rows)


def _holders(gpu: GpuView) -> str:
    return ", ".join(f"{h.user or '?'} ({h.namespace or '?'}/{h.pod or h.pod_uid or '?'})" for h in gpu.holders)


def _because(evidence: Evidence, view: ClusterView) -> str:
    values = (f"{key}={_value(key, value, view)}" for key, value in evidence.values.items() if value != "")
    return " ".join((evidence.key, *values))


def _value(key: str, value: str | float, view: ClusterView) -> str:
    """Return a figure as people say it, and a moment by how long ago it was."""
    if isinstance(value, str):
        return value
    if key in ("since", "at"):
        return f"{_for(view, value)} ago"
    if key == "bytes":
        return format_size(int(value))
    return format_ratio(value) if key == "ratio" else str(value)


def _pending(view: ClusterView) -> TextTable:
    waiting = [pod for pod in view.pods if pod.node is None and pod.phase == "Pending"]
    waiting.sort(key=lambda pod: pod.created_at or 0.0)
    rows: Rows = [
        (
            f"{pod.namespace}/{pod.name}",
            pod.identity.user,
            pod.identity.queue or "",
            f"{pod.requested_gpus:g}",
            _for(view, pod.created_at),
            f"gpuwarden why -n {pod.namespace} {pod.name}",
        )
        for pod in waiting
    ]
    return _table("Waiting", "pod | user | queue | GPUs | for | why", rows)


def _free(view: ClusterView) -> TextTable:
    rows: Rows = [
        (each.model, str(each.total), str(each.free), str(each.largest_on_one_node), _where(each.on))
        for each in view.free
    ]
    return _table("Free GPUs", "model | GPUs | free | largest job on one node | where", rows)


def _where(free_on: Mapping[str, int]) -> str:
    """Return the nodes with the most to give, and what each has."""
    most = sorted(free_on.items(), key=lambda item: (-item[1], item[0]))
    more = f" and {len(most) - NODES_SHOWN} more" if len(most) > NODES_SHOWN else ""
    return ", ".join(f"{node}: {free}" for node, free in most[:NODES_SHOWN]) + more


def _queues(view: ClusterView) -> TextTable:
    rows: Rows = [
        (q.name, q.state or "", f"{q.used:g}", f"{q.waiting:g}", None if q.free is None else f"{q.free:g}")
        for q in view.queues
    ]
    return _table("Queues", "queue | state | GPUs used | GPUs waiting | free", rows)


def _users(view: ClusterView) -> TextTable:
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
    return _table("Users", "user | GPUs | util | GPU memory | CPU cores | memory | shm | disk", rows)
