"""Image caches, and other contents of a runtime's root."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from monitor.agent.metrics.label_values import infos
from monitor.base.metrics import Row, gauges, label
from monitor.facts import ImageCacheFact, ImageFact, NodeSnapshot, RuntimeUsageFact, VolumeFact

CACHES: tuple[Row[ImageCacheFact], ...] = (
    ("gpuwarden_images", "Images in the cache.", lambda c: len(c.images)),
    ("gpuwarden_images_total_bytes", "All images, shared layers counted once.", lambda c: c.total_bytes),
    ("gpuwarden_images_unused", "Images that no container uses.", lambda c: sum(not i.containers for i in c.images)),
)
IMAGES: tuple[Row[ImageFact], ...] = (
    ("gpuwarden_image_size_bytes", "Size of the image.", lambda i: i.size_bytes),
    ("gpuwarden_image_unique_bytes", "Layers that no other image shares.", lambda i: i.unique_bytes),
    ("gpuwarden_image_last_used_seconds", "When a container last used it (Unix time).", lambda i: i.last_used_at),
    ("gpuwarden_image_first_seen_seconds", "When it was first seen here (Unix time).", lambda i: i.first_seen_at),
    ("gpuwarden_image_containers", "Containers that use it, running or stopped.", lambda i: len(i.containers)),
)
USAGE: tuple[Row[RuntimeUsageFact], ...] = (
    ("gpuwarden_runtime_layers_bytes", "Layers of all images, each counted once.", lambda u: u.layers_bytes),
    ("gpuwarden_runtime_writable_bytes", "Writable layers of all containers.", lambda u: u.writable_bytes),
    ("gpuwarden_runtime_build_cache_bytes", "Build cache.", lambda u: u.build_cache_bytes),
    ("gpuwarden_runtime_build_cache_reclaimable_bytes", "Build cache that nothing uses.",
     lambda u: u.build_cache_reclaimable_bytes),
)  # fmt: skip
VOLUMES: tuple[Row[VolumeFact], ...] = (
    ("gpuwarden_runtime_volume_bytes", "Size of the volume.", lambda v: v.size_bytes),
    ("gpuwarden_runtime_volume_references", "Containers that refer to the volume.", lambda v: v.references),
)


def families(snapshot: NodeSnapshot) -> Iterable[Metric]:
    """Image caches and runtime usage."""
    caches = snapshot.images or ()
    info = GaugeMetricFamily("gpuwarden_runtime_info", "A container runtime.", labels=("runtime", "version", "root"))
    for cache in caches:
        info.add_metric((cache.runtime, label(cache.version), label(cache.root)), 1)
    if info.samples:
        yield info
    yield from gauges(CACHES, ("runtime",), [((cache.runtime,), cache) for cache in caches])
    images = [((c.runtime, label(i.id), label(_name(i))), i) for c in caches for i in c.images]
    yield from gauges(IMAGES, ("runtime", "image_id", "image"), images)
    yield from _details(caches)
    usage = snapshot.runtime_usage or ()
    yield from gauges(USAGE, ("runtime",), [((use.runtime,), use) for use in usage])
    volumes = [((use.runtime, label(volume.name)), volume) for use in usage for volume in use.volumes]
    yield from gauges(VOLUMES, ("runtime", "volume"), volumes)


def _details(caches: Iterable[ImageCacheFact]) -> Iterable[Metric]:
    """Further names of an image, the containers that use it, and whether it is pinned or local."""
    images = [(cache.runtime, image) for cache in caches for image in cache.images]
    names = [(runtime, image.id, label(name)) for runtime, image in images for name in image.names[1:]]
    text = "A further name of the image."
    yield from infos("gpuwarden_image_name_info", text, ("runtime", "image_id", "name"), names)
    users = [(runtime, image.id, user) for runtime, image in images for user in image.containers]
    text = "A container that uses the image, running or stopped."
    yield from infos("gpuwarden_image_container_info", text, ("runtime", "image_id", "container_id"), users)
    pinned = [(runtime, image.id) for runtime, image in images if image.pinned]
    yield from infos(
        "gpuwarden_image_pinned", "An image that the runtime never removes.", ("runtime", "image_id"), pinned
    )
    local = [(runtime, image.id) for runtime, image in images if image.local]
    yield from infos(
        "gpuwarden_image_local", "An image that no registry is known to have.", ("runtime", "image_id"), local
    )


def _name(image: ImageFact) -> str:
    """First name of an image; the snapshot has all of them."""
    return (image.names or image.digests or ("",))[0]
