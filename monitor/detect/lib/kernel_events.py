"""Kernel events of a node: their causes, and what on the node each of them is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from monitor.detect.labels import label_value, label_values
from monitor.detect.subjects import NodeReport
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kernel import KernelEvent
from monitor.facts.kernel import KernelEventKind as Kind
from monitor.facts.kube import ContainerStatusFact, PodFact
from monitor.facts.nvidia.actions import ErrorAction
from monitor.facts.nvidia.sxids import sxid_action
from monitor.facts.text import Value

# Kinds that are not listed concern GPUs (see gpu-fault) or the end of another.
_CAUSES: dict[str, str] = {
    Kind.PCIE_CORRECTED: "pcie-corrected",
    Kind.PCIE_UNCORRECTED: "pcie-error",
    Kind.HARDWARE_CORRECTED: "memory-corrected",
    Kind.HARDWARE_UNCORRECTED: "memory-error",
    Kind.DISK_ERROR: "disk-error",
    Kind.FILESYSTEM_ERROR: "filesystem-error",
    Kind.FILESYSTEM_READ_ONLY: "filesystem-read-only",
    Kind.NFS_NOT_RESPONDING: "nfs-not-responding",
    Kind.HUNG_TASK: "hung-task",
    Kind.LOCKUP: "cpu-lockup",
    Kind.NODE_OOM: "node-out-of-memory",
    Kind.CONTAINER_OOM: "container-out-of-memory",
}
_SWITCH_CAUSES = {
    ErrorAction.NONE: "nvswitch-harmless",
    ErrorAction.RESET_GPU: "nvswitch-reset",
    ErrorAction.REBOOT_NODE: "nvswitch-reboot",
}
_DISK_CAUSES = frozenset({"disk-error", "filesystem-error", "filesystem-read-only"})
# What follows nvme0 in nvme0n1p1, and sda in sda1: a name that ends with a digit has no number right after it.
_PARTITION_OF_NUMBERED = re.compile(r"(?:n\d{1,4})?(?:p\d{1,4})?", re.ASCII)
_PARTITION = re.compile(r"\d{0,4}", re.ASCII)


@dataclass(frozen=True)
class Occurrence:
    """An event with its cause, the labels of its subject, and values for texts about it. Times are ours."""

    cause: str
    since: float
    at: float
    count: int
    labels: dict[str, str]
    values: dict[str, Value]
    message: str


def occurrences(report: NodeReport, facts: ClusterFacts) -> Iterator[Occurrence]:
    """Events that matter, oldest first."""
    events = report.snapshot.kernel.recent if report.snapshot.kernel else ()
    recovered = {event.device: event.at for event in events if event.kind == Kind.NFS_RECOVERED}
    for event in sorted(events, key=lambda event: event.at):
        cause = _cause(event)
        if cause is None or (cause == "nfs-not-responding" and event.at <= recovered.get(event.device, event.at - 1)):
            continue
        labels, values = _subject(event, cause, report, facts)
        if cause == "container-out-of-memory" and _kubernetes_knows(event, facts):
            continue
        yield Occurrence(
            cause, event.since + report.skew, event.at + report.skew, max(1, event.count), labels, values,
            event.message or "?",
        )  # fmt: skip


def _cause(event: KernelEvent) -> str | None:
    if event.kind == Kind.NVSWITCH:
        return _SWITCH_CAUSES.get(sxid_action(event.code or 0, fatal=event.fatal), "nvswitch-vendor")
    return _CAUSES.get(event.kind)


def _subject(
    event: KernelEvent, cause: str, report: NodeReport, facts: ClusterFacts
) -> tuple[dict[str, str], dict[str, Value]]:
    labels, device = {"node": label_value(report.node)}, event.device or "?"
    values: dict[str, Value] = {"node": report.node, "device": device, "code": event.code or 0}
    if cause in _DISK_CAUSES or cause == "nfs-not-responding":
        mounts = _mounts_of_server(device, report) if cause == "nfs-not-responding" else _mounts_of_disk(device, report)
        place = mounts[0] if mounts else device
        return labels | {"mount": label_value(place)}, values | {"mount": place}
    if cause == "container-out-of-memory":
        return _container(event, labels, values, report, facts)
    gpus = report.snapshot.gpu.gpus if report.snapshot.gpu else ()
    gpu = next((gpu.index for gpu in gpus if event.device and gpu.pci_bus_id == event.device), None)
    return (labels | {"gpu": str(gpu)} if gpu is not None else labels), values


def _mounts_of_disk(device: str, report: NodeReport) -> list[str]:
    """Mounts of a disk, or of its partitions."""
    partition = _PARTITION_OF_NUMBERED if device[-1:].isdecimal() else _PARTITION
    for fact in report.snapshot.disk_io or ():
        if fact.mounts and fact.device.startswith(device) and partition.fullmatch(fact.device, len(device)):
            return list(fact.mounts)
    return []


def _mounts_of_server(server: str, report: NodeReport) -> list[str]:
    """Mounts of a server, first those that are expected: they have a rule of their own."""
    expected = {mount.path for mount in report.snapshot.mounts or ()}
    mounts = [fact.mount for fact in report.snapshot.disk or () if fact.device.strip("[]").startswith(f"{server}:")]
    return sorted(mounts, key=lambda mount: (mount not in expected, mount))


def _container(
    event: KernelEvent, labels: dict[str, str], values: dict[str, Value], report: NodeReport, facts: ClusterFacts
) -> tuple[dict[str, str], dict[str, Value]]:
    """The container whose process was killed: as Kubernetes, else the runtime, else the cgroup names it."""
    known = report.containers.get(event.container_id or "")
    pod = facts.pod_by_uid.get(event.pod_uid or "")
    status = _status(pod, event.container_id) if pod is not None else None
    names = {
        "pod": pod.name if pod else known.pod_name if known else event.pod_uid,
        "namespace": pod.namespace if pod else known.namespace if known else None,
        "container": status.name if status else (known.container or known.name) if known else event.container_id,
    }
    pod_text = "/".join(name for name in (names["namespace"], names["pod"]) if name) or "?"
    return labels | label_values(names), values | {"pod": pod_text, "container": names["container"] or "?"}


def _status(pod: PodFact, container_id: str | None) -> ContainerStatusFact | None:
    return next((status for status in pod.statuses if container_id and status.container_id == container_id), None)


def _kubernetes_knows(event: KernelEvent, facts: ClusterFacts) -> bool:
    """Whether the pod's status has the reason, so that a rule about the pod reports it."""
    pod = facts.pod_by_uid.get(event.pod_uid or "")
    ends = [end for status in pod.statuses for end in (status, status.last)] if pod is not None else []
    return any(end is not None and end.reason == "OOMKilled" for end in ends)
