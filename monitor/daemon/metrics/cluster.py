"""Metrics of the cluster: data sources, nodes, GPUs, queues, users and pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from operator import attrgetter

from prometheus_client.core import Metric

from monitor.base.metric_rows import RenderedRows, Samples, joined_rows, one_row
from monitor.base.metrics import MetricTable
from monitor.daemon.metrics.label_values import short
from monitor.facts.cluster import (
    ClusterView,
    FreeView,
    GpuView,
    Holder,
    NodeView,
    PodView,
    QueueView,
    ShareView,
    SourceView,
    UsageView,
)
from monitor.facts.gpu_resources import Unit, resource_kind

NO_HOLDER = Holder()
NodeGpus = tuple[GpuView, ...]

SOURCES: MetricTable[SourceView] = MetricTable(
    ("source",), (("gpuwarden_source_up", "Whether the data source is available.", lambda s: s.ok),)
)
NODES: MetricTable[NodeView] = MetricTable(
    ("node",),
    (
        ("gpuwarden_node_ready", "Whether the node is ready in Kubernetes.", lambda n: n.ready),
        ("gpuwarden_node_schedulable", "Whether new pods can be scheduled on the node.",
         lambda n: n.schedulable if n.in_kubernetes else None),
        ("gpuwarden_node_agent_silent", "Whether the agent of the node does not respond.",
         lambda n: n.silent_since is not None if n.has_agent else None),
        ("gpuwarden_node_requested_gpus", "GPUs requested by pods on the node.",
         lambda n: n.requested if n.in_kubernetes and (n.capacity is not None or not n.shares) else None),
        ("gpuwarden_node_free_gpus", "Allocatable GPUs that are not requested and usable.",
         lambda n: n.free),
    ),
)  # fmt: skip
SHARES: MetricTable[ShareView] = MetricTable(
    ("node", "resource", "unit"),
    (
        ("gpuwarden_node_gpu_shares", "Allocatable shares of GPUs and other accelerators, in their unit.",
         lambda s: s.total),
        ("gpuwarden_node_requested_gpu_shares", "The part of them that pods on the node request.", lambda s: s.used),
    ),
)  # fmt: skip
POD_SHARES: MetricTable[float] = MetricTable(
    ("namespace", "pod", "node", "resource", "unit"),
    (
        ("gpuwarden_pod_requested_gpu_shares",
         "Shares of GPUs and other accelerators that the pod requests, in their unit.", lambda amount: amount),
    ),
)  # fmt: skip
GPUS: MetricTable[tuple[tuple[str, ...], int]] = MetricTable(
    ("node", "model", "state"), (("gpuwarden_gpus", "GPUs by state.", lambda counted: counted[1]),)
)
GPU_STATE: MetricTable[GpuView] = MetricTable(
    ("node", "gpu", "uuid", "model", "state", "namespace", "pod", "user", "workload", "queue"),
    (("gpuwarden_gpu_state", "State of the GPU, with its first holder.", lambda _: 1),),
)
GPU_SINCE: MetricTable[GpuView] = MetricTable(
    ("node", "gpu", "uuid"),
    (("gpuwarden_gpu_state_since_seconds", "Time at which the GPU entered its state (Unix time).", lambda g: g.since),),
)
FREE: MetricTable[FreeView] = MetricTable(
    ("model",),
    (
        ("gpuwarden_free_gpus", "Free GPUs of the model.", lambda f: f.free),
        ("gpuwarden_free_gpus_largest_on_one_node", "Most free GPUs of the model on one node.",
         lambda f: f.largest_on_one_node),
    ),
)  # fmt: skip
QUEUES: MetricTable[QueueView] = MetricTable(
    ("queue",),
    (
        ("gpuwarden_queue_used_gpus", "GPUs allocated to pods of the queue.", lambda q: q.used),
        ("gpuwarden_queue_waiting_gpus", "GPUs requested by waiting pods of the queue.", lambda q: q.waiting),
        ("gpuwarden_queue_capacity_gpus", "GPU quota of the queue.", lambda q: q.capacity),
        ("gpuwarden_queue_free_gpus", "GPU quota of the queue that is not used.", lambda q: q.free),
    ),
)
QUEUE_SHARES: MetricTable[tuple[QueueView, str]] = MetricTable(
    ("queue", "resource", "unit"),
    (
        ("gpuwarden_queue_used_gpu_shares",
         "Shares of GPUs and other accelerators allocated to pods of the queue, in their unit.",
         lambda row: row[0].used_shares.get(row[1], 0.0)),
        ("gpuwarden_queue_waiting_gpu_shares", "Shares requested by waiting pods of the queue.",
         lambda row: row[0].waiting_shares.get(row[1], 0.0)),
        ("gpuwarden_queue_capacity_gpu_shares", "Quota of the queue in shares.",
         lambda row: row[0].capacity_shares.get(row[1])),
    ),
)  # fmt: skip
USERS: MetricTable[UsageView] = MetricTable(
    ("user",),
    (
        ("gpuwarden_user_gpus", "GPUs allocated to pods of the user.", lambda u: u.gpus),
        ("gpuwarden_user_gpu_utilization_ratio", "Mean utilization of these GPUs.", lambda u: u.gpu_utilization_ratio),
        ("gpuwarden_user_gpu_memory_bytes", "GPU memory used by processes of the user.", lambda u: u.gpu_memory_bytes),
        ("gpuwarden_user_cpu_cores", "CPU cores used by pods of the user.", lambda u: u.cpu_cores),
        ("gpuwarden_user_memory_bytes", "Memory used by pods of the user.", lambda u: u.memory_bytes),
        ("gpuwarden_user_shm_bytes", "Shared memory used by pods of the user.", lambda u: u.shm_bytes),
        ("gpuwarden_user_disk_bytes", "Logs and writable layers of pods of the user.", lambda u: u.disk_bytes),
    ),
)
PODS: MetricTable[PodView] = MetricTable(
    ("namespace", "pod", "node", "user", "workload", "queue", "phase"),
    (("gpuwarden_pod_requested_gpus", "GPUs requested by the pod.", lambda p: p.requested_gpus),),
)
_counts = joined_rows(GPUS, lambda counted: counted[0])
TABLES = (SOURCES, NODES, GPUS, GPU_STATE, GPU_SINCE, FREE, QUEUES, QUEUE_SHARES, USERS, PODS, SHARES, POD_SHARES)


class ClusterFamilies:
    """Metrics of the cluster view. Those of nodes, GPUs and pods are rendered again only where they have changed."""

    def __init__(self) -> None:
        self._nodes = RenderedRows(NODES, _node_version, one_row(NODES, lambda node: (short(node.name),)))
        self._gpu_counts = RenderedRows(GPUS, _versions("model", "state"), _render_counts)
        self._gpu_states = RenderedRows(
            GPU_STATE, _versions("state", "holders", "uuid", "model", "index"), _of_gpus(GPU_STATE, _gpu_labels)
        )
        self._gpu_since = RenderedRows(
            GPU_SINCE,
            _versions("since", "uuid", "index"),
            _of_gpus(GPU_SINCE, lambda gpu: (short(gpu.node), str(gpu.index), short(gpu.uuid))),
        )
        self._pods = RenderedRows(PODS, _pod_version, one_row(PODS, _pod_labels))

    def __call__(self, view: ClusterView) -> Iterable[Metric | bytes]:
        """Families of one view."""
        gpus = view.gpus_by_node
        yield from SOURCES.families(((short(source.name),), source) for source in view.sources)
        yield from self._nodes.texts((node.name, node) for node in view.nodes)
        yield from self._gpu_counts.texts(gpus.items())
        yield from self._gpu_states.texts(gpus.items())
        yield from self._gpu_since.texts(gpus.items())
        yield from FREE.families(((short(free.model),), free) for free in view.free)
        yield from QUEUES.families(((short(queue.name),), queue) for queue in view.queues)
        yield from QUEUE_SHARES.families(
            ((short(queue.name), short(name), _unit(name)), (queue, name))
            for queue in view.queues
            for name in _shares(queue)
        )
        yield from USERS.families(((short(user),), usage) for user, usage in view.users.items())
        yield from self._pods.texts((pod.uid, pod) for pod in view.pods if pod.requested_gpus > 0)
        yield from SHARES.families(
            ((short(node.name), short(each.resource), each.unit), each) for node in view.nodes for each in node.shares
        )
        yield from POD_SHARES.families(
            (_share_labels(pod, name), amount) for pod in view.pods for name, amount in pod.gpu_shares.items()
        )


def _versions(*names: str) -> Callable[[NodeGpus], object]:
    """Function that returns these attributes of all GPUs of a node."""
    read = attrgetter(*names)
    return lambda gpus: [*map(read, gpus)]


def _of_gpus(
    table: MetricTable[GpuView], labels: Callable[[GpuView], tuple[str, ...]]
) -> Callable[[NodeGpus], Samples]:
    """Function that renders the GPUs of a node, each index once."""
    render = joined_rows(table, labels)
    return lambda gpus: Samples(_node_label(gpus), render({gpu.index: gpu for gpu in gpus}.values()))


def _render_counts(gpus: NodeGpus) -> Samples:
    """GPUs of a node by the labels node, model and state."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for (node, model, state), count in Counter((gpu.node, gpu.model, gpu.state) for gpu in gpus).items():
        counts[short(node), short(model), state.value] += count
    return Samples(_node_label(gpus), _counts(counts.items()))


def _node_label(gpus: NodeGpus) -> tuple[str, ...]:
    return (short(gpus[0].node),)


def _node_version(node: NodeView) -> object:
    return (
        node.ready, node.schedulable, node.in_kubernetes, node.has_agent, node.silent_since is None, node.requested,
        node.free, node.capacity is None, bool(node.shares),
    )  # fmt: skip


def _pod_version(pod: PodView) -> object:
    return pod.identity, pod.node, pod.phase, pod.requested_gpus


def _gpu_labels(gpu: GpuView) -> tuple[str, ...]:
    holder = gpu.holders[0] if gpu.holders else NO_HOLDER
    labels = (
        gpu.node, gpu.index, gpu.uuid, gpu.model, gpu.state.value,
        holder.namespace, holder.pod, holder.user, holder.job, holder.queue,
    )  # fmt: skip
    return tuple(short(label) for label in labels)


def _share_labels(pod: PodView, resource: str) -> tuple[str, ...]:
    return short(pod.namespace), short(pod.name), short(pod.node), short(resource), _unit(resource)


def _shares(queue: QueueView) -> list[str]:
    """Resources that a queue limits, or that its pods hold or wait for."""
    return sorted(queue.used_shares | queue.waiting_shares | queue.capacity_shares)


def _unit(resource: str) -> str:
    kind = resource_kind(resource)
    return (kind.unit if kind is not None else Unit.DEVICE).value


def _pod_labels(pod: PodView) -> tuple[str, ...]:
    owner = pod.identity
    labels = (pod.namespace, pod.name, pod.node, owner.user, owner.job, owner.queue, pod.phase)
    return tuple(short(label) for label in labels)
