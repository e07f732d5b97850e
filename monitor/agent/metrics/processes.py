"""Use of the GPUs: processes as the driver lists them, allocations as the kubelet made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from monitor.agent.metrics.containers import pod_users
from monitor.agent.metrics.label_values import infos
from monitor.base.metrics import Row, gauges, label
from monitor.facts import ContainerFact, GpuProcessFact, NodeSnapshot

PROCESS = (
    "gpu", "uuid", "mig_uuid", "pid", "process", "container_id", "pod_uid", "pod", "namespace", "container", "user"
)  # fmt: skip

GAUGES: tuple[Row[GpuProcessFact], ...] = (
    ("gpuwarden_gpu_process_memory_bytes", "GPU memory that the process holds.", lambda p: p.memory_bytes),
    ("gpuwarden_gpu_process_start_time_seconds", "When the process started (Unix time).", lambda p: p.started_at),
)


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Processes and allocations, with their pod if it is known."""
    index = {gpu.uuid: label(gpu.index) for gpu in snapshot.gpu.gpus} if snapshot.gpu else {}
    if snapshot.gpu_processes is not None:
        by_id = {container.id: container for container in snapshot.containers or ()}
        users = pod_users(snapshot.containers or ())
        rows = [
            (_labels(process, index.get(process.gpu_uuid, ""), by_id.get(process.container_id or ""), users), process)
            for process in snapshot.gpu_processes
        ]
        yield from gauges(GAUGES, PROCESS, rows)
        yield from _states(rows)
        yield from _infos(snapshot.gpu_processes)
    if snapshot.pod_devices is not None:
        yield from _allocations(snapshot, index)


def _labels(
    process: GpuProcessFact, gpu: str, container: ContainerFact | None, users: Mapping[str | None, str]
) -> tuple[str, ...]:
    return (
        gpu,
        process.gpu_uuid,
        process.mig_uuid or "",
        str(process.pid),
        label(process.name),
        process.container_id or "",
        process.pod_uid or "",
        label(container.pod_name) if container else "",
        label(container.namespace) if container else "",
        label(container.container or container.name) if container else "",
        label(users.get(process.pod_uid)),
    )


def _states(rows: list[tuple[tuple[str, ...], GpuProcessFact]]) -> Iterable[Metric]:
    state = GaugeMetricFamily(
        "gpuwarden_gpu_process_state", "State of the process: a letter from /proc, or gone.", labels=(*PROCESS, "state")
    )
    since = GaugeMetricFamily(
        "gpuwarden_gpu_process_state_since_seconds",
        "Since when the process is in state D, Z or gone (Unix time).",
        labels=PROCESS,
    )
    for labels, process in rows:
        if process.state is not None:
            state.add_metric((*labels, process.state), 1)
        if process.state in ("D", "Z", "gone") and process.state_since is not None:
            since.add_metric(labels, process.state_since)
    yield from (family for family in (state, since) if family.samples)


def _infos(processes: Iterable[GpuProcessFact]) -> Iterable[Metric]:
    names = ("uuid", "mig_uuid", "pid", "process", "container_id", "pod_uid", "kind", "uid")
    rows = [
        [label(v) for v in (p.gpu_uuid, p.mig_uuid, p.pid, p.name, p.container_id, p.pod_uid, p.kind, p.uid)]
        for p in processes
    ]
    yield from infos("gpuwarden_gpu_process_info", "A process that holds a GPU.", names, rows)


def _allocations(snapshot: NodeSnapshot, index: dict[str | None, str]) -> Iterable[Metric]:
    names = ("gpu", "uuid", "replica", "resource", "device", "pod_uid", "pod", "namespace", "container", "source")
    family = GaugeMetricFamily(
        "gpuwarden_gpu_allocation_info", "A device that the kubelet allocated to a container.", labels=names
    )
    rows = [
        (
            index.get(device.gpu_uuid, ""), device.gpu_uuid, device.replica, device.resource, device.device_id,
            device.pod_uid, device.pod_name, device.namespace, device.container, device.source,
        )
        for device in snapshot.pod_devices or ()
    ]  # fmt: skip
    for values in dict.fromkeys(rows):  # two claims of a container may share a device
        family.add_metric([label(value) for value in values], 1)
    if family.samples:
        yield family
