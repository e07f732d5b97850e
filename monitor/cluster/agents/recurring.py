"""Strings that recur in snapshots are kept once in memory.

Every node has the same images, namespaces and collectors; each snapshot names containers, pods and GPUs in many parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from sys import intern  # frees a string with its last user
from typing import Any

from msgspec.structs import force_setattr

from monitor.facts.gpu import GpuInventory
from monitor.facts.storage import ImageCacheFact, RuntimeUsageFact

_FIELDS = {
    "collectors": ("name", "outcome"),
    "containers": ("id", "runtime", "state", "image", "image_id", "pod_uid", "pod_name", "namespace", "container"),
    "container_usage": ("container_id",),
    "disk": ("mount", "device", "fstype"),
    "gpu_processes": ("gpu_uuid", "kind", "name", "state", "container_id", "pod_uid"),
    "logs": ("container_id",),
    "mounts": ("path", "state"),
    "pod_devices": (
        "resource",
        "source",
        "gpu_uuid",
        "device_id",
        "pod_uid",
        "pod_name",
        "namespace",
        "container",
    ),
    "probes": ("target", "address"),
    "shm": ("container_id",),
}
_OF_GPUS = ("uuid", "pci_bus_id", "model", "compute_mode", "recovery_action")
_OF_IMAGES = ("names", "digests", "size_bytes", "created_at")  # the same wherever the image is
MAX_IMAGE_VALUES = 16_384


def share_strings(parts: Mapping[str, Any]) -> None:
    """Replace recurring strings in parts of a snapshot that has just been decoded and has no other user."""
    for part, fields in _FIELDS.items():
        _share(parts.get(part) or (), fields)
    for cache in parts.get("images") or ():
        _share_images(cache)
    for usage in parts.get("runtime_usage") or ():
        _share_containers(usage)
    if parts.get("gpu") is not None:
        _share_gpus(parts["gpu"])


def _share(facts: Iterable[Any], fields: tuple[str, ...]) -> None:
    for fact in facts:
        for field in fields:
            value = getattr(fact, field)
            if value is not None:
                force_setattr(fact, field, intern(value))


def _share_gpus(inventory: GpuInventory) -> None:
    _share(inventory.gpus, _OF_GPUS)
    for gpu in inventory.gpus:
        if gpu.throttle_reasons:
            force_setattr(gpu, "throttle_reasons", tuple(map(intern, gpu.throttle_reasons)))


def _share_images(cache: ImageCacheFact) -> None:
    for image in cache.images:
        force_setattr(image, "id", intern(image.id))
        for field in ("names", "digests", "containers"):
            force_setattr(image, field, tuple(map(intern, getattr(image, field))))
        for field in _OF_IMAGES:
            force_setattr(image, field, _shared(getattr(image, field)))


@lru_cache(MAX_IMAGE_VALUES, typed=True)
def _shared(value: Any) -> Any:
    """The first of equal values of one type."""
    return value


def _share_containers(usage: RuntimeUsageFact) -> None:
    force_setattr(usage, "writable", {intern(container): size for container, size in usage.writable.items()})
