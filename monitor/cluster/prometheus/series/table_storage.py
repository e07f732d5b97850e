"""Series of containers, disks, images and registries of a node."""

from __future__ import annotations

from monitor.cluster.prometheus.series.thing import Record, Take, Thing, truth, value, words
from monitor.facts.actions import ActionsFact
from monitor.facts.storage import (
    DiskFact,
    DiskIoFact,
    EvictionFact,
    ImageCacheFact,
    ImageFact,
    KubeletFact,
    MountFact,
    ProbeFact,
    RuntimeUsageFact,
    VolumeFact,
)
from monitor.facts.workload import ContainerFact, ContainerUsageFact, LogFact, ShmFact


def _container(record: Record) -> None:
    """Outside a pod, the label `container` is the name in the runtime."""
    if "pod_uid" not in record and "pod_name" not in record:
        record.pop("container", None)


def _image(record: Record) -> None:
    """The first name is on every series of an image, others have their own; an image without a name has a digest."""
    first = record.pop("first", None)
    others = sorted(record.pop("others", ()))
    record["names"] = ([first] if first is not None and "@" not in first else []) + others


CONTAINERS = Thing(
    "containers[container_id]",
    ContainerFact,
    {
        "gpuwarden_container_info": words(
            runtime="runtime", state="state", image="image", image_id="image_id", name="name", log_path="log_path",
            pod_uid="pod_uid", pod_name="pod", namespace="namespace", container="container",
        ),
        "gpuwarden_container_sandbox_info": Take(
            value="sandbox",
            truth=True,
            words={
                "runtime": "runtime", "state": "state", "name": "name", "user": "user",
                "pod_uid": "pod_uid", "pod_name": "pod", "namespace": "namespace",
            },
        ),
        "gpuwarden_container_start_time_seconds": value("started_at"),
    },
    named={"id": "container_id"},
    tidy=_container,
)  # fmt: skip
USAGE = Thing(
    "container_usage[container_id]",
    ContainerUsageFact,
    {
        "gpuwarden_container_cpu_cores": value("cpu_cores"),
        "gpuwarden_container_cpu_limit_cores": value("cpu_limit_cores"),
        "gpuwarden_container_memory_bytes": value("memory_bytes"),
    },
    named={"container_id": "container_id"},
)
SHM = Thing(
    "shm[container_id,device]",
    ShmFact,
    {"gpuwarden_shm_size_bytes": value("size_bytes"), "gpuwarden_shm_used_bytes": value("used_bytes")},
    named={"container_id": "container_id", "device": "device"},
)
LOGS = Thing(
    "logs[container_id]",
    LogFact,
    {
        "gpuwarden_container_log_bytes": value("size_bytes"),
        "gpuwarden_container_log_written_seconds": value("written_at"),
        "gpuwarden_container_log_unreadable": Take(),
        "gpuwarden_container_log_error_info": words(error="error"),
    },
    named={"container_id": "container_id"},
)
DISKS = Thing(
    "disk[mount]",
    DiskFact,
    {
        "gpuwarden_disk_hung": words(device="device", fstype="fstype"),
        "gpuwarden_disk_hung_since_seconds": value("hung_since"),
        "gpuwarden_disk_size_bytes": value("size_bytes"),
        "gpuwarden_disk_used_bytes": value("used_bytes"),
        "gpuwarden_disk_available_bytes": value("available_bytes"),
        "gpuwarden_disk_inodes": value("inodes"),
        "gpuwarden_disk_inodes_used": value("inodes_used"),
        "gpuwarden_disk_read_only": truth("read_only"),
        "gpuwarden_disk_error_info": words(error="error"),
        "gpuwarden_disk_role_info": Take(each=("roles", "role")),
    },
    named={"mount": "mount"},
)
DISK_IO = Thing(
    "disk_io[device]",
    DiskIoFact,
    {
        "gpuwarden_disk_io_read_bytes_total": value("read_bytes_total"),
        "gpuwarden_disk_io_written_bytes_total": value("written_bytes_total"),
        "gpuwarden_disk_io_reads_total": value("reads_total"),
        "gpuwarden_disk_io_writes_total": value("writes_total"),
        "gpuwarden_disk_io_busy_seconds_total": value("busy_seconds_total"),
        "gpuwarden_disk_io_queue_seconds_total": value("queue_seconds_total"),
        "gpuwarden_disk_io_busy_ratio": value("busy_ratio"),
        "gpuwarden_disk_io_queue_length": value("queue_length"),
        "gpuwarden_disk_io_mount_info": Take(each=("mounts", "mount")),
    },
    named={"device": "device"},
)
MOUNTS = Thing(
    "mounts[mount]",
    MountFact,
    {
        "gpuwarden_mount_state_since_seconds": Take(value="since", words={"state": "state"}),
        "gpuwarden_mount_error_info": words(error="error"),
    },
    named={"path": "mount"},
)
PROBES = Thing(
    "probes[registry]",
    ProbeFact,
    {
        "gpuwarden_registry_reachable": truth("ok"),
        "gpuwarden_registry_probe_time_seconds": value("at"),
        "gpuwarden_registry_probe_duration_seconds": value("duration_seconds"),
        "gpuwarden_registry_probe_failure": words(stage="stage", cause="cause"),
        "gpuwarden_registry_probe_info": words(status="status", address="address", error="error"),
    },
    named={"target": "registry"},
)
ACTIONS = Thing(
    "actions",
    ActionsFact,
    {
        "gpuwarden_actions_enabled": truth("enabled"),
        "gpuwarden_actions_refused_total": value("refused.{reason}"),
        "gpuwarden_actions_refused_last_seconds": value("refused_at"),
    },
)
KUBELET = Thing(
    "kubelet",
    KubeletFact,
    {
        "gpuwarden_kubelet_image_gc_high_ratio": value("image_gc_high_ratio"),
        "gpuwarden_kubelet_image_gc_low_ratio": value("image_gc_low_ratio"),
    },
)
EVICTIONS = Thing(
    "kubelet.eviction_hard[signal]",
    EvictionFact,
    {
        "gpuwarden_kubelet_eviction_available_ratio": value("available_ratio"),
        "gpuwarden_kubelet_eviction_available_bytes": value("available_bytes"),
    },
    named={"signal": "signal"},
)
CACHES = Thing(
    "images[runtime]",
    ImageCacheFact,
    {
        "gpuwarden_runtime_info": words(version="version", root="root"),
        "gpuwarden_images_total_bytes": value("total_bytes"),
    },
    named={"runtime": "runtime"},
)
IMAGES = Thing(
    "images[runtime].images[image_id]",
    ImageFact,
    {
        "gpuwarden_image_containers": words(first="image"),
        "gpuwarden_image_name_info": Take(each=("others", "name")),
        "gpuwarden_image_container_info": Take(each=("containers", "container_id")),
        "gpuwarden_image_pinned": truth("pinned"),
        "gpuwarden_image_local": truth("local"),
        "gpuwarden_image_size_bytes": value("size_bytes"),
        "gpuwarden_image_unique_bytes": value("unique_bytes"),
        "gpuwarden_image_first_seen_seconds": value("first_seen_at"),
        "gpuwarden_image_last_used_seconds": value("last_used_at"),
    },
    named={"id": "image_id"},
    tidy=_image,
)
RUNTIME_USAGE = Thing(
    "runtime_usage[runtime]",
    RuntimeUsageFact,
    {
        "gpuwarden_runtime_writable_bytes": value("writable_bytes"),
        "gpuwarden_runtime_build_cache_bytes": value("build_cache_bytes"),
        "gpuwarden_container_writable_bytes": value("writable.{container_id}"),
    },
    named={"runtime": "runtime"},
)
VOLUMES = Thing(
    "runtime_usage[runtime].volumes[volume]",
    VolumeFact,
    {"gpuwarden_runtime_volume_bytes": value("size_bytes")},
    named={"name": "volume"},
)

THINGS = (CONTAINERS, USAGE, SHM, LOGS, DISKS, DISK_IO, MOUNTS, PROBES, ACTIONS)
# Many series that change at most once a minute are queried less often.
SLOW_THINGS = (CACHES, IMAGES, RUNTIME_USAGE, VOLUMES, KUBELET, EVICTIONS)
SLOW_PARTS = ("images", "runtime_usage", "kubelet")
