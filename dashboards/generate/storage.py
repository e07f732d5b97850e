"""Storage and cleanup: disk usage and forecast, what takes the space, and what cleanup freed."""

from __future__ import annotations

from dashboards.generate import styles, upkeep
from dashboards.generate.board import Board, Row
from dashboards.generate.panels import Localized, figure, series
from dashboards.generate.promql import bottom, by_node, count, on_node, rate, top
from dashboards.generate.tables import Column, table

_MOUNT = 'mount=~"$mount"'
_DISK = "{{node}} {{mount}}"
_CONTAINER = ("namespace", "pod", "container", "user")
_DAY_SECONDS, _WINDOW = 86400, "6h"  # horizon of the forecast, and the period that it extrapolates


def _disk(name: str, window: str = "") -> str:
    return f"gpuwarden_disk_{name}{{{_MOUNT}}}{window}"


def _disks(expr: str) -> str:
    return by_node(expr, "mount")


_USED, _AVAILABLE, _SIZE = (_disk(name) for name in ("used_bytes", "available_bytes", "size_bytes"))
_SHARE = f"{_USED} / ({_USED} + {_AVAILABLE})"  # as df counts
_INODES = f"{_disk('inodes_used')} / {_disk('inodes')}"
_IN_A_DAY = f"clamp_min(predict_linear({_disk('available_bytes', f'[{_WINDOW}]')}, {_DAY_SECONDS}), 0)"
_LOSS = f"-deriv({_disk('available_bytes', f'[{_WINDOW}]')})"
# Below 1 KiB per second a disk does not count as filling up.
_FULL_IN = f"{_AVAILABLE} / ({_LOSS} > 1024)"
# A disk that was read-only all day is read-only on purpose.
_TURNED_READ_ONLY = f"{_disk('read_only')} == 1 unless min_over_time({_disk('read_only', '[1d]')}) == 1"
_BROKEN = f"{_disk('hung')} == 1 or {_disk('failed')} == 1 or ({_TURNED_READ_ONLY})"

NOW = Row(
    "storage.now",
    (
        figure("storage.full", count(f"{_disks(_SHARE)} > 0.8", _disks(_SHARE)), styles.WARN_ABOVE_ZERO, width=4),
        figure(
            "storage.filling",
            count(f"{_disks(_FULL_IN)} < {_DAY_SECONDS}", _disks(_SHARE)),
            style=styles.CRITICAL_ABOVE_ZERO,
            width=4,
        ),
        figure("storage.inodes", count(f"{_disks(_INODES)} > 0.8", _disks(_INODES)), styles.WARN_ABOVE_ZERO, width=4),
        figure("storage.broken", count(on_node(_BROKEN), on_node(_disk("hung"))), styles.CRITICAL_ABOVE_ZERO, width=4),
        figure(
            "storage.mounts-lost",
            count(f"{upkeep.MOUNTS} == 0", upkeep.MOUNTS),
            style=styles.CRITICAL_ABOVE_ZERO,
            width=4,
        ),
        figure(
            "storage.registries-lost",
            count(f"{upkeep.REGISTRIES} == 0", upkeep.REGISTRIES),
            style=styles.CRITICAL_ABOVE_ZERO,
            width=4,
        ),
    ),
)


def _of_role(expr: str, role: str) -> str:
    """Restrict an expression to the disks with a role."""
    return f'({expr}) * on(instance, mount) group_left() gpuwarden_disk_role_info{{role="{role}"}}'


def _room(signal: str, role: str) -> str:
    """Share of the disk left until the kubelet evicts pods; its threshold is either a ratio or a size."""
    share = f'gpuwarden_kubelet_eviction_available_ratio{{signal="{signal}"}}'
    size = f'gpuwarden_kubelet_eviction_available_bytes{{signal="{signal}"}}'
    available, size_of_disk = (
        _of_role("gpuwarden_disk_available_bytes", role),
        _of_role("gpuwarden_disk_size_bytes", role),
    )
    available_share = _of_role("gpuwarden_disk_available_bytes / gpuwarden_disk_size_bytes", role)
    by_share = f"({available_share}) - on(instance) group_left() {share}"
    by_size = f"(({available}) - on(instance) group_left() {size}) / ({size_of_disk})"
    return by_node(f"{by_share} or {by_size}", "mount")


def _disk_table() -> Localized:
    return table(
        "storage.disks",
        [
            _disks(_SHARE),
            _disks(_AVAILABLE),
            _disks(_SIZE),
            _disks(_FULL_IN),
            _disks(f"1 - {_IN_A_DAY} / {_SIZE}"),
            _disks(_INODES),
            _disks(_disk("read_only")),
            _disks(_disk("hung")),
        ],
        [
            Column("node", "node", link="node-gpus"),
            Column("mount", "mount"),
            Column("A", "used", styles.DISK_RATIO),
            Column("B", "available", styles.BYTES, width=110),
            Column("C", "size", styles.BYTES, width=110),
            Column("D", "full-in", styles.FULL_IN_SECONDS, width=110),
            Column("E", "in-a-day", styles.DISK_RATIO),
            Column("F", "inodes", styles.DISK_RATIO),
            Column("G", "read-only", styles.NOTICE, width=90),
            Column("H", "hung", styles.PROBLEM, width=90),
        ],
        height=11,
        sort_by=("used", True),
    )


DISKS = Row(
    "storage.disks",
    (
        _disk_table(),
        series("storage.share", (top(_disks(_SHARE)), _DISK), style=styles.DISK_RATIO, link="node-gpus"),
        series(
            "storage.marks",
            (top(_disks(_of_role(_SHARE, "runtime"))), _DISK),
            (f"min({on_node('gpuwarden_kubelet_image_gc_high_ratio')})", "<image-gc-high>"),
            (f"min({on_node('gpuwarden_kubelet_image_gc_low_ratio')})", "<image-gc-low>"),
            (
                f"""1 - max({on_node('gpuwarden_kubelet_eviction_available_ratio{signal="imagefs.available"}')})""",
                "<evicts-images>",
            ),
            (
                f"""1 - max({on_node('gpuwarden_kubelet_eviction_available_ratio{signal="nodefs.available"}')})""",
                "<evicts-node>",
            ),
            style=styles.DISK_RATIO,
            dashed="BCDE",
        ),
        series(
            "storage.prediction", (top(_disks(f"1 - {_IN_A_DAY} / {_SIZE}")), _DISK), style=styles.DISK_RATIO, width=8
        ),
        series(
            "storage.room",
            (bottom(_room("nodefs.available", "kubelet")), f"{_DISK} nodefs"),
            (bottom(_room("imagefs.available", "runtime")), f"{_DISK} imagefs"),
            style=styles.HEADROOM_RATIO,
            width=8,
        ),
        series("storage.inodes-line", (top(_disks(_INODES)), _DISK), style=styles.DISK_RATIO, width=8),
    ),
)

_DEVICE = "{{node}} {{device}}"
IO = Row(
    "storage.io",
    (
        series(
            "storage.busy", (top(by_node("gpuwarden_disk_io_busy_ratio", "device")), _DEVICE), style=styles.IO_RATIO
        ),
        series(
            "storage.queue",
            (top(by_node("gpuwarden_disk_io_queue_length", "device")), _DEVICE),
            style=styles.QUEUE_LENGTH,
        ),
        series(
            "storage.throughput",
            (top(by_node(rate("gpuwarden_disk_io_read_bytes_total"), "device"), 10), f"{_DEVICE} <read>"),
            (top(by_node(rate("gpuwarden_disk_io_written_bytes_total"), "device"), 10), f"{_DEVICE} <written>"),
            style=styles.BYTES_PER_SECOND,
        ),
        series(
            "storage.iowait",
            (top(by_node(rate('gpuwarden_host_cpu_seconds_total{mode="iowait"}'))), "{{node}}"),
            style=styles.CORES,
            link="node-gpus",
        ),
    ),
)

IMAGES = Row(
    "storage.images",
    (
        series(
            "storage.cache",
            (top(by_node("gpuwarden_images_total_bytes", "runtime")), "{{node}} {{runtime}}"),
            style=styles.BYTES,
            width=8,
        ),
        series("storage.unused", (top(by_node("gpuwarden_images_unused", "runtime")), "{{node}} {{runtime}}"), width=8),
        series(
            "storage.parts",
            (f"sum({on_node('gpuwarden_runtime_layers_bytes')})", "<layers>"),
            (f"sum({on_node('gpuwarden_runtime_writable_bytes')})", "<writable>"),
            (f"sum({on_node('gpuwarden_runtime_build_cache_bytes')})", "<build-cache>"),
            (f"sum({on_node('gpuwarden_runtime_volume_bytes')})", "<volumes>"),
            (f"sum({on_node('gpuwarden_container_log_bytes')})", "<logs>"),
            style=styles.BYTES,
            width=8,
            stacked=True,
        ),
        table(
            "storage.oversize",
            [
                f"topk(50, max by (image) ({on_node('gpuwarden_image_size_bytes')}))",
                f"count by (image) ({by_node('gpuwarden_image_size_bytes', 'image')})",
                f"sum by (image) ({on_node('gpuwarden_image_containers')})",
                f"1000 * max by (image) ({on_node('gpuwarden_image_last_used_seconds')})",
            ],
            [
                Column("image", "image"),
                Column("A", "size", styles.IMAGE_BYTES, width=120),
                Column("B", "on-nodes", width=100),
                Column("C", "containers", width=100),
                Column("D", "last-used", styles.SINCE, width=150),
            ],
            width=24,
            sort_by=("size", True),
        ),
    ),
)


def _largest(key: str, metric: str) -> Localized:
    return table(
        key,
        [f"topk(20, {by_node(metric, *_CONTAINER)})"],
        [
            Column("A", "size", styles.BYTES, width=100),
            Column("namespace", "namespace", link="namespace"),
            Column("pod", "pod"),
            Column("container", "container"),
            Column("user", "user", link="user"),
            Column("node", "node", link="node-gpus"),
        ],
        width=12,
        sort_by=("size", True),
    )


CONTAINERS = Row(
    "storage.containers",
    (
        _largest("storage.layers", "gpuwarden_container_writable_bytes"),
        _largest("storage.logs", "gpuwarden_container_log_bytes"),
        series(
            "storage.shm",
            (
                top(by_node("gpuwarden_shm_used_bytes / gpuwarden_shm_size_bytes", "namespace", "pod", "container")),
                "{{node}} {{namespace}}/{{pod}}",
            ),
            style=styles.SHM_RATIO,
        ),
        series(
            "storage.log-growth",
            (
                top(f"{by_node('deriv(gpuwarden_container_log_bytes[15m])', 'namespace', 'pod', 'container')} > 0"),
                "{{namespace}}/{{pod}} {{container}}",
            ),
            style=styles.BYTES_PER_SECOND,
        ),
    ),
)

DASHBOARD = Board("storage", ("node", "mount"), (NOW, DISKS, IO, IMAGES, CONTAINERS, upkeep.REACH, upkeep.CLEANUP))
