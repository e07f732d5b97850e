"""A node snapshot as tables of text.

An unknown value is shown as "?"; a part that could not be read says why. Cells hold no control characters, because
anyone can choose the names of images and mounts.
"""

from __future__ import annotations

from monitor.base.localtime import local_instant
from monitor.base.logs import printable
from monitor.base.units import format_ratio, format_size
from monitor.facts import CollectorFact, DiskFact, GpuFact, ImageFact, NodeSnapshot, ShmFact
from monitor.i18n import code
from monitor.i18n.figures import brief_duration
from monitor.present.table import UNKNOWN, Rows, TextTable, make_table, table_text, table_word

MAX_IMAGES = 5


def headline(snapshot: NodeSnapshot, timezone: str = "UTC", lang: str = "en") -> str:
    """One line: the node, when it was read, and its size."""
    read_at = local_instant(snapshot.at, timezone)
    parts = [table_text(lang, "node", node=snapshot.node), read_at, f"gpuwarden {snapshot.agent_version}"]
    if host := snapshot.host:
        parts.append(table_text(lang, "cpus", count=host.cpus))
        used, total = host.memory_total_bytes - host.memory_available_bytes, host.memory_total_bytes
        parts.append(table_text(lang, "memory-of", used=format_size(used), total=format_size(total)))
        parts += [table_text(lang, "load", load=f"{host.load1:.2f}")] if host.load1 is not None else []
        if host.booted_at is not None:
            parts.append(table_text(lang, "up", time=brief_duration(snapshot.at - host.booted_at, lang)))
        parts += [f"Linux {host.kernel}"] if host.kernel else []
    return printable(table_text(lang, "clause").join(parts))


def failed_collectors(snapshot: NodeSnapshot) -> tuple[str, ...]:
    """Names of collectors that failed or hang."""
    return tuple(fact.name for fact in snapshot.collectors if fact.hung_since or fact.outcome == "failed")


def tables(snapshot: NodeSnapshot, lang: str = "en") -> tuple[TextTable, ...]:
    """All tables of a snapshot, without those of features that are not configured or have nothing to show.

    Headings and codes stay English.
    """
    required = (_gpus(snapshot, lang), _disks(snapshot, lang), _shm(snapshot, lang), _caches(snapshot, lang))
    optional = (_images(snapshot), _xids(snapshot, lang), _mounts(snapshot, lang), _probes(snapshot, lang))
    return (*required, *(table for table in optional if table.rows), _collectors(snapshot, lang))


def _note(snapshot: NodeSnapshot, collector: str, empty: str, lang: str) -> str:
    """Why a table is empty: there is nothing, or it could not be read."""
    if getattr(snapshot, collector) is not None:
        return empty
    fact = next((fact for fact in snapshot.collectors if fact.name == collector), None)
    if fact is None:
        return table_text(lang, "not-read", collector=collector)
    state = _state(fact, snapshot.at, lang)
    return f"{table_word(state, lang)}: {fact.message}" if fact.message else state


def _state(fact: CollectorFact, now: float, lang: str) -> str:
    if fact.hung_since is not None:
        return table_text(lang, "hangs", time=brief_duration(max(0.0, now - fact.hung_since), lang))
    return {"starting": "not read yet", "absent": "none here"}.get(fact.outcome, fact.outcome)


def _size(size: int | None) -> str | None:
    return None if size is None else format_size(size)


def _share(part: float | None, whole: float | None) -> str | None:
    return None if part is None or not whole else format_ratio(part / whole)


def _of(part: str | None, whole: str | None) -> str | None:
    return None if part is None and whole is None else f"{part or UNKNOWN} / {whole or UNKNOWN}"


def _watts(watts: float | None) -> str | None:
    return None if watts is None else f"{watts:.0f} W"


def _collectors(snapshot: NodeSnapshot, lang: str) -> TextTable:
    rows: Rows = [
        (
            fact.name,
            _state(fact, snapshot.at, lang),
            brief_duration(fact.interval_seconds, lang),
            None if fact.duration_seconds is None else brief_duration(fact.duration_seconds, lang),
            fact.message or "",
        )
        for fact in snapshot.collectors
    ]
    return make_table("Collectors", "name | state | every | took | message", rows, "none enabled")


def _gpus(snapshot: NodeSnapshot, lang: str) -> TextTable:
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
            _gpu_state(gpu, lang),
        )
        for gpu in (snapshot.gpu.gpus if snapshot.gpu else ())
    ]
    driver = snapshot.gpu.driver_version if snapshot.gpu else None
    title = table_text(lang, "gpus-driver", version=printable(driver)) if driver else "GPUs"
    columns = "# | model | util | memory | temp | power | processes | pods | state"
    return make_table(title, columns, rows, _note(snapshot, "gpu", "the driver reports none", lang))


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


def _gpu_state(gpu: GpuFact, lang: str) -> str:
    if gpu.lost:
        return table_text(lang, "lost", error=gpu.error) if gpu.error else "lost"
    states = [gpu.error] if gpu.error else []
    if gpu.recovery_action is not None and gpu.recovery_action != "none":
        states.append(table_text(lang, "recovery", action=code(lang, gpu.recovery_action)))
    states += [table_text(lang, "throttled", reason=code(lang, reason)) for reason in gpu.throttle_reasons or ()]
    return ", ".join(states) or "ok"


def _disks(snapshot: NodeSnapshot, lang: str) -> TextTable:
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
            _disk_state(disk, snapshot.at, lang),
        )
        for disk in sorted(snapshot.disk or (), key=lambda disk: disk.mount)
    ]
    columns = "mount | device | type | role | size | free | used % | inodes % | state"
    return make_table("Disks", columns, rows, _note(snapshot, "disk", "none", lang))


def _disk_used(disk: DiskFact) -> str | None:
    """As `df` computes it, without the blocks reserved for root: the disk is 100 % full when only those are left."""
    if disk.used_bytes is None or disk.available_bytes is None:
        return None
    return _share(disk.used_bytes, disk.used_bytes + disk.available_bytes)


def _disk_state(disk: DiskFact, now: float, lang: str) -> str:
    if disk.hung_since is not None:
        return table_text(lang, "no-response", time=brief_duration(max(0.0, now - disk.hung_since), lang))
    return disk.error or ("read-only" if disk.read_only else "ok")


def _shm(snapshot: NodeSnapshot, lang: str) -> TextTable:
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
            table_word("host", lang)
            if shm.container_id is None
            else names.get(shm.container_id, shm.container_id[:12]),
            format_size(shm.size_bytes),
            format_size(shm.used_bytes),
            _share(shm.used_bytes, shm.size_bytes),
        )
        for shm in sorted(snapshot.shm or (), key=fullest)
    ]
    return make_table(
        "Shared memory (/dev/shm)", "container | size | used | used %", rows, _note(snapshot, "shm", "none", lang)
    )


def _caches(snapshot: NodeSnapshot, lang: str) -> TextTable:
    rows: Rows = [
        (cache.runtime, cache.version, cache.root, str(len(cache.images)), _size(cache.total_bytes))
        for cache in snapshot.images or ()
    ]
    columns = "runtime | version | root | images | size"
    return make_table("Image caches", columns, rows, _note(snapshot, "images", "no container runtime", lang))


def _images(snapshot: NodeSnapshot) -> TextTable:
    images = [image for cache in snapshot.images or () for image in cache.images]
    images.sort(key=lambda image: -(image.size_bytes or 0))
    rows: Rows = [
        (_image_name(image), _size(image.size_bytes), str(len(image.containers))) for image in images[:MAX_IMAGES]
    ]
    return make_table("Largest images", "image | size | containers", rows)


def _image_name(image: ImageFact) -> str:
    return ", ".join(image.names) or f"<none> {image.id.removeprefix('sha256:')[:12]}"


def _xids(snapshot: NodeSnapshot, lang: str) -> TextTable:
    rows: Rows = [
        (
            str(xid.code),
            xid.gpu_uuid or xid.pci_bus_id,
            str(xid.count),
            table_text(lang, "ago", time=brief_duration(max(0.0, snapshot.at - xid.last_at), lang)),
        )
        for xid in (snapshot.xid.counts if snapshot.xid else ())
    ]
    return make_table("GPU errors (XID)", "code | gpu | count | last", rows)


def _mounts(snapshot: NodeSnapshot, lang: str) -> TextTable:
    rows: Rows = [
        (mount.path, mount.state, brief_duration(max(0.0, snapshot.at - mount.since), lang), mount.error or "")
        for mount in snapshot.mounts or ()
    ]
    return make_table("Expected mounts", "path | state | for | message", rows)


def _probes(snapshot: NodeSnapshot, lang: str) -> TextTable:
    rows: Rows = [
        (
            probe.target,
            "ok" if probe.ok else f"{probe.stage or UNKNOWN}: {code(lang, probe.cause or UNKNOWN)}",
            None if probe.duration_seconds is None else brief_duration(probe.duration_seconds, lang),
            probe.error or "",
        )
        for probe in snapshot.probes or ()
    ]
    return make_table("Registries", "address | state | took | message", rows)
