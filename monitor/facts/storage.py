"""Disks, mounts, images and what fills them on one node."""

from __future__ import annotations

from typing import Annotated

import msgspec

from monitor.facts.base import LONG_LIST, BoundedFloat, BoundedInt, Fact


class DiskFact(Fact, frozen=True, kw_only=True):
    """One mounted filesystem. Sizes are None while it does not answer; `hung_since` then says since when."""

    mount: str
    device: str
    fstype: str
    # of: "system", "runtime", "kubelet", "data", "nas". One disk may have several.
    roles: tuple[str, ...] = ()
    size_bytes: BoundedInt | None = None
    used_bytes: BoundedInt | None = None
    available_bytes: BoundedInt | None = None
    inodes: BoundedInt | None = None
    inodes_used: BoundedInt | None = None
    read_only: bool | None = None
    hung_since: BoundedFloat | None = None
    error: str | None = None


class DiskIoFact(Fact, frozen=True, kw_only=True):
    """One block device. Totals count since boot; ratios and rates are over the last interval."""

    device: str
    read_bytes_total: BoundedInt
    written_bytes_total: BoundedInt
    reads_total: BoundedInt
    writes_total: BoundedInt
    busy_seconds_total: BoundedFloat
    queue_seconds_total: BoundedFloat
    in_flight: BoundedInt | None = None
    busy_ratio: BoundedFloat | None = None
    queue_length: BoundedFloat | None = None
    mounts: tuple[str, ...] = ()


class MountFact(Fact, frozen=True, kw_only=True):
    """A mount that the configuration expects. `state` is ok, missing, hung, read-only, stale or failing."""

    path: str
    state: str
    since: BoundedFloat
    latency_seconds: BoundedFloat | None = None
    error: str | None = None


class ImageFact(Fact, frozen=True, kw_only=True):
    """An image in a runtime's cache. `containers` are the ids that use it, running or stopped.

    `local`: it has a name and no digest of a registry, so it was built, committed or loaded here, and whether it could
    be pulled again nobody knows. One without a name has been replaced, and is not called local.
    """

    id: str
    names: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    size_bytes: BoundedInt | None = None
    # What removing just this image would free: bytes no other image shares.
    unique_bytes: BoundedInt | None = None
    created_at: BoundedFloat | None = None
    first_seen_at: BoundedFloat | None = None
    last_used_at: BoundedFloat | None = None
    containers: tuple[str, ...] = ()
    pinned: bool = False
    local: bool = False


class ImageCacheFact(Fact, frozen=True, kw_only=True):
    """One runtime's images. `total_bytes` counts shared layers once."""

    runtime: str  # "docker" or "containerd"
    images: Annotated[tuple[ImageFact, ...], LONG_LIST] = ()
    version: str | None = None
    root: str | None = None
    total_bytes: BoundedInt | None = None


class VolumeFact(Fact, frozen=True, kw_only=True):
    """A runtime's named volume and how many containers refer to it."""

    name: str
    size_bytes: BoundedInt | None = None
    references: BoundedInt | None = None


class RuntimeUsageFact(Fact, frozen=True, kw_only=True):
    """What a runtime's root holds beside images. Slow to find out, so it is read rarely."""

    runtime: str
    layers_bytes: BoundedInt | None = None
    writable_bytes: BoundedInt | None = None
    # container id -> bytes of its writable layer
    writable: dict[str, BoundedInt] = msgspec.field(default_factory=dict)
    build_cache_bytes: BoundedInt | None = None
    build_cache_reclaimable_bytes: BoundedInt | None = None
    volumes: Annotated[tuple[VolumeFact, ...], LONG_LIST] = ()


class EvictionFact(Fact, frozen=True, kw_only=True):
    """Below what is available the kubelet evicts pods, and before that removes images: a share of the disk, or bytes.

    `signal` is nodefs.available or imagefs.available.
    """

    signal: str
    available_ratio: BoundedFloat | None = None
    available_bytes: BoundedInt | None = None


class KubeletFact(Fact, frozen=True, kw_only=True):
    """What the kubelet was told about full disks. What is None it was not told: there its own defaults hold.

    A signal that `eviction_hard` is without is one that it does not look at.
    """

    image_gc_high_ratio: BoundedFloat | None = None
    image_gc_low_ratio: BoundedFloat | None = None
    eviction_hard: tuple[EvictionFact, ...] | None = None


class ProbeFact(Fact, frozen=True, kw_only=True):
    """Whether this node reaches a registry. On failure `stage` is dns, tcp, tls or http, and `cause` a word."""

    target: str
    ok: bool
    at: BoundedFloat
    stage: str | None = None
    cause: str | None = None
    status: BoundedInt | None = None
    error: str | None = None
    address: str | None = None
    duration_seconds: BoundedFloat | None = None
