"""Disks, mounts, images and disk usage of one node."""

from __future__ import annotations

from typing import Annotated

import msgspec

from monitor.facts.base import LONG_LIST, SHORT_LIST, BoundedFloat, BoundedInt, BoundedText, Fact, Identifier


class DiskFact(Fact, frozen=True, kw_only=True):
    """One mounted filesystem. Sizes are None while it is hung; `hung_since` is since when."""

    mount: BoundedText
    device: BoundedText
    fstype: BoundedText
    # Any of "system", "runtime", "kubelet", "data", "nas".
    roles: Annotated[tuple[Identifier, ...], SHORT_LIST] = ()
    size_bytes: BoundedInt | None = None
    used_bytes: BoundedInt | None = None
    available_bytes: BoundedInt | None = None
    inodes: BoundedInt | None = None
    inodes_used: BoundedInt | None = None
    read_only: bool | None = None
    hung_since: BoundedFloat | None = None
    error: BoundedText | None = None


class DiskIoFact(Fact, frozen=True, kw_only=True):
    """One block device. Totals count since boot; ratios and rates cover the last interval."""

    device: BoundedText
    read_bytes_total: BoundedInt
    written_bytes_total: BoundedInt
    reads_total: BoundedInt
    writes_total: BoundedInt
    busy_seconds_total: BoundedFloat
    queue_seconds_total: BoundedFloat
    in_flight: BoundedInt | None = None
    busy_ratio: BoundedFloat | None = None
    queue_length: BoundedFloat | None = None
    mounts: Annotated[tuple[BoundedText, ...], LONG_LIST] = ()


class MountFact(Fact, frozen=True, kw_only=True):
    """An expected mount from the configuration. `state` is ok, missing, hung, read-only, stale or failing."""

    path: BoundedText
    state: Identifier
    since: BoundedFloat
    latency_seconds: BoundedFloat | None = None
    error: BoundedText | None = None


class ImageFact(Fact, frozen=True, kw_only=True):
    """An image in a runtime's cache. `containers` are the ids of running or stopped containers that use it.

    `local`: it has a name but no registry digest, so it was built, committed or loaded here and may not be pullable
    again. An image without a name has been replaced and is not local.
    """

    id: Identifier
    names: Annotated[tuple[BoundedText, ...], LONG_LIST] = ()
    digests: Annotated[tuple[BoundedText, ...], LONG_LIST] = ()
    size_bytes: BoundedInt | None = None
    # Bytes shared with no other image, freed by removing this one.
    unique_bytes: BoundedInt | None = None
    created_at: BoundedFloat | None = None
    first_seen_at: BoundedFloat | None = None
    last_used_at: BoundedFloat | None = None
    containers: Annotated[tuple[Identifier, ...], LONG_LIST] = ()
    pinned: bool = False
    local: bool = False


class ImageCacheFact(Fact, frozen=True, kw_only=True):
    """Images of one runtime. `total_bytes` counts shared layers once."""

    runtime: Identifier  # "docker" or "containerd"
    images: Annotated[tuple[ImageFact, ...], LONG_LIST] = ()
    version: BoundedText | None = None
    root: BoundedText | None = None
    total_bytes: BoundedInt | None = None


class VolumeFact(Fact, frozen=True, kw_only=True):
    """A named volume of a runtime, and the number of containers that refer to it."""

    name: BoundedText
    size_bytes: BoundedInt | None = None
    references: BoundedInt | None = None


class RuntimeUsageFact(Fact, frozen=True, kw_only=True):
    """Disk usage of a runtime's root besides images. Expensive to determine, so read rarely."""

    runtime: Identifier
    layers_bytes: BoundedInt | None = None
    writable_bytes: BoundedInt | None = None
    # container id -> bytes of its writable layer
    writable: Annotated[dict[Identifier, BoundedInt], LONG_LIST] = msgspec.field(default_factory=dict)
    build_cache_bytes: BoundedInt | None = None
    build_cache_reclaimable_bytes: BoundedInt | None = None
    volumes: Annotated[tuple[VolumeFact, ...], LONG_LIST] = ()


class EvictionFact(Fact, frozen=True, kw_only=True):
    """Threshold of available space below which the kubelet evicts pods, after removing images: a ratio, or bytes.

    `signal` is nodefs.available or imagefs.available.
    """

    signal: Identifier
    available_ratio: BoundedFloat | None = None
    available_bytes: BoundedInt | None = None


class KubeletFact(Fact, frozen=True, kw_only=True):
    """The kubelet's disk settings. None: not configured, the kubelet's defaults apply.

    The kubelet ignores signals that are missing from `eviction_hard`.
    """

    image_gc_high_ratio: BoundedFloat | None = None
    image_gc_low_ratio: BoundedFloat | None = None
    eviction_hard: Annotated[tuple[EvictionFact, ...], SHORT_LIST] | None = None


class ProbeFact(Fact, frozen=True, kw_only=True):
    """Whether this node reaches a registry. On failure `stage` is dns, tcp, tls or http, and `cause` a code."""

    target: BoundedText
    ok: bool
    at: BoundedFloat
    stage: Identifier | None = None
    cause: Identifier | None = None
    status: BoundedInt | None = None
    error: BoundedText | None = None
    address: BoundedText | None = None
    duration_seconds: BoundedFloat | None = None
