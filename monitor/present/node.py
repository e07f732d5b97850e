"""A node snapshot as tables of text.

An unknown value is shown as "?"; a part that could not be read says why. Cells hold no control characters, because
anyone can choose the names of images and mounts.
"""

from __future__ import annotations

from monitor.base.localtime import local_instant
from monitor.base.logs import printable
from monitor.base.units import format_duration, format_ratio, format_size
from monitor.facts import CollectorFact, DiskFact, GpuFact, ImageFact, NodeSnapshot, ShmFact
from monitor.present.table import UNKNOWN, Rows, TextTable, make_table

MAX_IMAGES = 5


def headline(snapshot: NodeSnapshot, timezone: str = "UTC") -> str:
    """One line: the node, when it was read, and its size."""
    read_at = local_instant(snapshot.at, timezone)
    parts = [f"node {snapshot.node}", read_at, f"gpuwarden {snapshot.agent_version}"]
    if host := snapshot.host:
        parts.append(f"{host.cpus} CPUs")
        used = host.memory_total_bytes - host.memory_available_bytes
        parts.append(f"memory {format_size(used)} of {format_size(host.memory_total_bytes)}")
        parts += [f"load {host.load1:.2f}"] if host.load1 is not None else []
        parts += [f"up {format_duration(snapshot.at - host.booted_at)}"] if host.booted_at is not None else []
        parts += [f"Linux {host.kernel}"] if host.kernel else []
    return printable(", ".join(parts))


def failed_collectors(snapshot: NodeSnapshot) -> tuple[str, ...]:
    """Names of collectors that failed or hang."""
    return tuple(fact.name for fact in snapshot.collectors if fact.hung_since or fact.outcome == "failed")


def tables(snapshot: NodeSnapshot) -> tuple[TextTable, ...]:
    """All tables of a snapshot, without those of features that are not configured or have nothing to show."""
    required = (_gpus(snapshot), _disks(snapshot), _shm(snapshot), _caches(snapshot))
    optional = (_images(snapshot), _xids(snapshot), _mounts(snapshot), _probes(snapshot))
    return (*required, *(table for table in optional if table.rows), _collectors(snapshot))


def _note(snapshot: NodeSnapshot, collector: str, empty: str) -> str:
    """Why a table is empty: there is nothing, or it could not be read."""
    if getattr(snapshot, collector) is not None:
        return empty
    fact = next((fact for fact in snapshot.collectors if fact.name == collector), None)
    if fact is None:
        return f"not read: collector {collector} is disabled"
    return f"{_state(fact, snapshot.at)}: {fact.message}" if fact.message else _state(fact, snapshot.at)


def _state(fact: CollectorFact, now: float) -> str:
    if fact.hung_since is not None:
        return f"hangs for {format_duration(max(0.0, now - fact.hung_since))}"
    return {"starting": "not read yet", "absent": "none here"}.get(fact.outcome, fact.outcome)


def _size(size: int | None) -> str | None:
    return None if size is None else format_size(size)


def _share(part: float | None, whole: float | None) -> str | None:
    return None if part is None or not whole else format_ratio(part / whole)


def _of(part: str | None, whole: str | None) -> str | None:
    return None if part is None and whole is None else f"{part or UNKNOWN} / {whole or UNKNOWN}"


def _watts(watts: float | None) -> str | None:
    return None if watts is None else f"{watts:.0f} W"


def _collectors(snapshot: NodeSnapshot) -> TextTable:
    rows: Rows = [
        (
            fact.name,
            _state(fact, snapshot.at),
            format_duration(fact.interval_seconds),
            None if fact.duration_seconds is None else format_duration(fact.duration_seconds),
            fact.message or "",
        )
        for fact in snapshot.collectors
    ]
    return make_table("Collectors", "name | state | every | took | message", rows, "none enabled")


def _gpus(snapshot: NodeSnapshot) -> TextTable:
    rows: Rows = [
        (
            str(gpu.index),
            gpu.model,
            None if gpu.utilization_ratio is None else format_ratio(gpu.utilization_ratio),
            _of(_size(gpu.memory_used_bytes), _size(gpu.memory_total_bytes)),
            None if gpu.temperature_celsius is None else f"{gpu.temperature_celsius:.0f} C",
            _of(_watts(gpu.power_watts), _watts(gpu.power_limit_watts)),
            _processes_on(gpu, snapshot),
            _pods_with(gpu, snapshot),
            _gpu_state(gpu),
        )
        for gpu in (snapshot.gpu.gpus if snapshot.gpu else ())
    ]
    driver = snapshot.gpu.driver_version if snapshot.gpu else None
    title = f"GPUs (driver {printable(driver)})" if driver else "GPUs"
    columns = "# | model | util | memory | temp | power | processes | pods | state"
    return make_table(title, columns, rows, _note(snapshot, "gpu", "the driver reports none"))


def _processes_on(gpu: GpuFact, snapshot: NodeSnapshot) -> str | None:
    if gpu.uuid is None or snapshot.gpu_processes is None:
        return None
    return str(sum(process.gpu_uuid == gpu.uuid for process in snapshot.gpu_processes))


def _pods_with(gpu: GpuFact, snapshot: NodeSnapshot) -> str | None:
    """Pods that the kubelet gave a GPU; None if it gave some by claims, which do not say which GPU they hold."""
    if gpu.uuid is None or snapshot.pod_devices is None:
        return None
    assigned = (device for device in snapshot.pod_devices if device.gpu_uuid == gpu.uuid)
    names = sorted({f"{device.namespace}/{device.pod_name}" for device in assigned if device.pod_name})
    claimed = any(device.claim is not None for device in snapshot.pod_devices)
    return ", ".join(names) or (None if claimed else "-")


def _gpu_state(gpu: GpuFact) -> str:
    if gpu.lost:
        return f"lost: {gpu.error}" if gpu.error else "lost"
    states = [gpu.error] if gpu.error else []
    states += [f"recovery: {gpu.recovery_action}"] if gpu.recovery_action not in (None, "none") else []
    states += [f"throttled: {reason}" for reason in gpu.throttle_reasons or ()]
    return ", ".join(states) or "ok"


def _disks(snapshot: NodeSnapshot) -> TextTable:
    rows: Rows = [
        (
            disk.mount,
            disk.device,
            disk.fstype,
            ", ".join(disk.roles) or "-",
            _size(disk.size_bytes),
            _size(disk.available_bytes),
            _disk_used(disk),
            _share(disk.inodes_used, disk.inodes),
            _disk_state(disk, snapshot.at),
        )
        for disk in sorted(snapshot.disk or (), key=lambda disk: disk.mount)
    ]
    columns = "mount | device | type | role | size | free | used % | inodes % | state"
    return make_table("Disks", columns, rows, _note(snapshot, "disk", "none"))


def _disk_used(disk: DiskFact) -> str | None:
    """As `df` computes it, without the blocks reserved for root: the disk is 100 % full when only those are left."""
    if disk.used_bytes is None or disk.available_bytes is None:
        return None
    return _share(disk.used_bytes, disk.used_bytes + disk.available_bytes)


def _disk_state(disk: DiskFact, now: float) -> str:
    if disk.hung_since is not None:
        return f"not responding for {format_duration(max(0.0, now - disk.hung_since))}"
    return disk.error or ("read-only" if disk.read_only else "ok")


def _shm(snapshot: NodeSnapshot) -> TextTable:
    names = {
        container.id: f"{container.namespace}/{container.pod_name}/{container.container}"
        if container.pod_name
        else container.name or container.id[:12]
        for container in snapshot.containers or ()
    }

    def fullest(shm: ShmFact) -> tuple[bool, float]:
        return shm.container_id is not None, -shm.used_bytes / (shm.size_bytes or 1)

    rows: Rows = [
        (
            "host" if shm.container_id is None else names.get(shm.container_id, shm.container_id[:12]),
            format_size(shm.size_bytes),
            format_size(shm.used_bytes),
            _share(shm.used_bytes, shm.size_bytes),
        )
        for shm in sorted(snapshot.shm or (), key=fullest)
    ]
    return make_table(
        "Shared memory (/dev/shm)", "container | size | used | used %", rows, _note(snapshot, "shm", "none")
    )


def _caches(snapshot: NodeSnapshot) -> TextTable:
    rows: Rows = [
        (cache.runtime, cache.version, cache.root, str(len(cache.images)), _size(cache.total_bytes))
        for cache in snapshot.images or ()
    ]
    columns = "runtime | version | root | images | size"
    return make_table("Image caches", columns, rows, _note(snapshot, "images", "no container runtime"))


def _images(snapshot: NodeSnapshot) -> TextTable:
    images = [image for cache in snapshot.images or () for image in cache.images]
    images.sort(key=lambda image: -(image.size_bytes or 0))
    rows: Rows = [
        (_image_name(image), _size(image.size_bytes), str(len(image.containers))) for image in images[:MAX_IMAGES]
    ]
    return make_table("Largest images", "image | size | containers", rows)


def _image_name(image: ImageFact) -> str:
    return ", ".join(image.names) or f"<none> {image.id.removeprefix('sha256:')[:12]}"


def _xids(snapshot: NodeSnapshot) -> TextTable:
    rows: Rows = [
        (
            str(xid.code),
            xid.gpu_uuid or xid.pci_bus_id,
            str(xid.count),
            f"{format_duration(max(0.0, snapshot.at - xid.last_at))} ago",
        )
        for xid in (snapshot.xid.counts if snapshot.xid else ())
    ]
    return make_table("GPU errors (XID)", "code | gpu | count | last", rows)


def _mounts(snapshot: NodeSnapshot) -> TextTable:
    rows: Rows = [
        (mount.path, mount.state, format_duration(max(0.0, snapshot.at - mount.since)), mount.error or "")
        for mount in snapshot.mounts or ()
    ]
    return make_table("Expected mounts", "path | state | for | message", rows)


def _probes(snapshot: NodeSnapshot) -> TextTable:
    rows: Rows = [
        (
            probe.target,
            "ok" if probe.ok else f"{probe.stage or UNKNOWN}: {probe.cause or UNKNOWN}",
            None if probe.duration_seconds is None else format_duration(probe.duration_seconds),
            probe.error or "",
        )
        for probe in snapshot.probes or ()
    ]
    return make_table("Registries", "address | state | took | message", rows)
