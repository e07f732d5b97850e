"""Disks, disk I/O, expected mounts and registries."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from monitor.agent.metrics.label_values import infos, message_label
from monitor.base.metrics import Row, counters, gauges, label
from monitor.facts import DiskFact, DiskIoFact, MountFact, NodeSnapshot, ProbeFact

DISKS: tuple[Row[DiskFact], ...] = (
    ("gpuwarden_disk_size_bytes", "Size of the filesystem.", lambda d: d.size_bytes),
    ("gpuwarden_disk_used_bytes", "Bytes in use.", lambda d: d.used_bytes),
    ("gpuwarden_disk_available_bytes", "Bytes that users can still write.", lambda d: d.available_bytes),
    ("gpuwarden_disk_inodes", "Inodes of the filesystem.", lambda d: d.inodes),
    ("gpuwarden_disk_inodes_used", "Inodes in use.", lambda d: d.inodes_used),
    ("gpuwarden_disk_read_only", "Whether the filesystem is read-only.", lambda d: d.read_only),
    ("gpuwarden_disk_hung", "Whether the filesystem does not respond.", lambda d: d.hung_since is not None),
    ("gpuwarden_disk_hung_since_seconds", "Since when it does not respond (Unix time).", lambda d: d.hung_since),
    ("gpuwarden_disk_failed", "Whether reading the filesystem failed.", lambda d: d.error is not None),
)
IO_GAUGES: tuple[Row[DiskIoFact], ...] = (
    ("gpuwarden_disk_io_busy_ratio", "Share of the last interval with I/O under way.", lambda d: d.busy_ratio),
    ("gpuwarden_disk_io_queue_length", "Mean requests under way over the last interval.", lambda d: d.queue_length),
    ("gpuwarden_disk_io_in_flight", "Requests under way now.", lambda d: d.in_flight),
)  # fmt: skip
IO_COUNTERS: tuple[Row[DiskIoFact], ...] = (
    ("gpuwarden_disk_io_read_bytes", "Bytes read.", lambda d: d.read_bytes_total),
    ("gpuwarden_disk_io_written_bytes", "Bytes written.", lambda d: d.written_bytes_total),
    ("gpuwarden_disk_io_reads", "Reads completed.", lambda d: d.reads_total),
    ("gpuwarden_disk_io_writes", "Writes completed.", lambda d: d.writes_total),
    ("gpuwarden_disk_io_busy_seconds", "Time with I/O under way.", lambda d: d.busy_seconds_total),
    ("gpuwarden_disk_io_queue_seconds", "Time spent by all requests together.", lambda d: d.queue_seconds_total),
)
MOUNTS: tuple[Row[MountFact], ...] = (
    ("gpuwarden_mount_ok", "Whether the expected mount is present and responds.", lambda m: m.state == "ok"),
    ("gpuwarden_mount_latency_seconds", "How long the mount took to respond.", lambda m: m.latency_seconds),
)
PROBES: tuple[Row[ProbeFact], ...] = (
    ("gpuwarden_registry_reachable", "Whether this node reaches the registry.", lambda p: p.ok),
    ("gpuwarden_registry_probe_time_seconds", "When the registry was probed (Unix time).", lambda p: p.at),
    ("gpuwarden_registry_probe_duration_seconds", "How long the probe took.", lambda p: p.duration_seconds),
)


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Everything about storage and registries."""
    disks = [(tuple(label(v) for v in (d.mount, d.device, d.fstype)), d) for d in snapshot.disk or ()]
    yield from gauges(DISKS, ("mount", "device", "fstype"), disks)
    yield from _roles(snapshot.disk or ())
    devices = [((label(io.device),), io) for io in snapshot.disk_io or ()]
    yield from gauges(IO_GAUGES, ("device",), devices)
    yield from counters(IO_COUNTERS, ("device",), devices)
    yield from gauges(MOUNTS, ("mount",), [((label(m.path),), m) for m in snapshot.mounts or ()])
    yield from _mount_states(snapshot.mounts or ())
    yield from gauges(PROBES, ("registry",), [((label(p.target),), p) for p in snapshot.probes or ()])
    yield from _probe_failures(snapshot.probes or ())
    yield from _details(snapshot)


def _details(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Error messages, and which devices serve which mounts."""
    disks = [(label(d.mount), message_label(d.error)) for d in snapshot.disk or () if d.error]
    yield from infos("gpuwarden_disk_error_info", "Why the filesystem cannot be read.", ("mount", "error"), disks)
    served = [(label(io.device), label(mount)) for io in snapshot.disk_io or () for mount in io.mounts]
    yield from infos("gpuwarden_disk_io_mount_info", "A mount that the device serves.", ("device", "mount"), served)
    mounts = [(label(m.path), message_label(m.error)) for m in snapshot.mounts or () if m.error]
    yield from infos("gpuwarden_mount_error_info", "What is wrong with the mount.", ("mount", "error"), mounts)
    probes = [
        (label(p.target), label(p.status), label(p.address), message_label(p.error)) for p in snapshot.probes or ()
    ]
    names = ("registry", "status", "address", "error")
    yield from infos("gpuwarden_registry_probe_info", "Response of the registry.", names, probes)


def _roles(disks: Iterable[DiskFact]) -> Iterable[Metric]:
    family = GaugeMetricFamily("gpuwarden_disk_role_info", "What the filesystem is used for.", labels=("mount", "role"))
    for disk in disks:
        for role in disk.roles:
            family.add_metric((label(disk.mount), role), 1)
    if family.samples:
        yield family


def _mount_states(mounts: Iterable[MountFact]) -> Iterable[Metric]:
    family = GaugeMetricFamily(
        "gpuwarden_mount_state_since_seconds", "Since when it is in this state (Unix time).", labels=("mount", "state")
    )  # fmt: skip
    for mount in mounts:
        family.add_metric((label(mount.path), mount.state), mount.since)
    if family.samples:
        yield family


def _probe_failures(probes: Iterable[ProbeFact]) -> Iterable[Metric]:
    family = GaugeMetricFamily(
        "gpuwarden_registry_probe_failure", "Why the registry is not reached.", labels=("registry", "stage", "cause")
    )
    for probe in probes:
        if not probe.ok:
            family.add_metric((label(probe.target), label(probe.stage), label(probe.cause)), 1)
    if family.samples:
        yield family
