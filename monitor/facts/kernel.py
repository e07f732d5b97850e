"""Kernel log of one node, except for XIDs: classified events."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from monitor.facts.base import SHORT_LIST, BoundedFloat, BoundedInt, BoundedText, Fact, Identifier


class KernelEventKind(StrEnum):
    """Class of a kernel line. A daemon that is older than an agent ignores kinds that it does not know."""

    GPU_INIT = "gpu-init"
    GPU_LOST = "gpu-lost"
    NVSWITCH = "nvswitch"
    PCIE_CORRECTED = "pcie-corrected"
    PCIE_UNCORRECTED = "pcie-uncorrected"
    HARDWARE_CORRECTED = "hardware-corrected"
    HARDWARE_UNCORRECTED = "hardware-uncorrected"
    DISK_ERROR = "disk-error"
    FILESYSTEM_ERROR = "filesystem-error"
    FILESYSTEM_READ_ONLY = "filesystem-read-only"
    NFS_NOT_RESPONDING = "nfs-not-responding"
    NFS_RECOVERED = "nfs-recovered"
    HUNG_TASK = "hung-task"
    LOCKUP = "lockup"
    NODE_OOM = "node-oom"
    CONTAINER_OOM = "container-oom"


class KernelEvent(Fact, frozen=True, kw_only=True):
    """Equal events within a minute: the first and last time, their number, and the last line.

    `device` is what the line is about: a PCI address, disk, server, CPU or process. `code` is that of an SXid, `fatal`
    what its line says.
    """

    kind: Identifier
    since: BoundedFloat
    at: BoundedFloat
    count: BoundedInt = 1
    device: BoundedText | None = None
    code: BoundedInt | None = None
    fatal: bool | None = None
    container_id: Identifier | None = None
    pod_uid: Identifier | None = None
    message: BoundedText | None = None


class KernelCount(Fact, frozen=True, kw_only=True):
    """Number of events of a kind since the start of the kernel log."""

    kind: Identifier
    count: BoundedInt
    last_at: BoundedFloat


class KernelFacts(Fact, frozen=True, kw_only=True):
    """Kernel events of a node: counts per kind, and the newest. `skipped_lines` were lost or too many to classify."""

    counts: Annotated[tuple[KernelCount, ...], SHORT_LIST] = ()
    recent: Annotated[tuple[KernelEvent, ...], SHORT_LIST] = ()
    skipped_lines: BoundedInt = 0
