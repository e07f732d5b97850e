"""Disks: usage of every real filesystem of the node, and what it is used for."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from monitor.agent.guard import HungCallGuard, HungError
from monitor.agent.mountinfo import MountPoint, Mounts, MountTable, decoded, host_path, node_path, resolve_links
from monitor.agent.settings import Paths
from monitor.base.clock import Clock
from monitor.facts import DiskFact

log = logging.getLogger(__name__)

# Once a pass has spent this long, every further mount gets only the minimal timeout: when a NAS with dozens of exports
# dies, the figures of local disks still arrive in time.
_PASS_BUDGET_SECONDS = 6.0
_MIN_TIMEOUT_SECONDS = 0.05


class _Space(NamedTuple):
    """Result of statvfs, in bytes. A filesystem with size 0 (some FUSE) or 0 inodes does not count them."""

    read_only: bool | None = None
    size: int | None = None
    used: int | None = None
    available: int | None = None
    inodes: int | None = None
    inodes_used: int | None = None


class DiskCollector:
    """Reads every disk with its own timeout: one that hangs is reported as hung and does not delay the others."""

    name = "disk"

    def __init__(
        self,
        paths: Paths,
        runtime_roots: Callable[[], tuple[str, ...]],
        clock: Clock = time,
        per_mount_timeout: float = 2.0,
    ) -> None:
        self._paths = paths
        self._runtime_roots = runtime_roots
        self._clock = clock
        self._timeout = per_mount_timeout
        self._guard = HungCallGuard("disk", clock)
        self._table = MountTable(paths.proc, clock)
        self._omitted = 0

    def collect(self) -> tuple[DiskFact, ...]:
        """All disks, the system disk first. Raise OSError if the node's mounts cannot be read."""
        mounts = self._table.read()
        self._log_omitted(mounts.omitted)
        roles = self._roles(mounts)
        deadline = self._clock.monotonic() + _PASS_BUDGET_SECONDS
        return tuple(self._fact(mount, roles[mount], deadline) for mount in mounts.disks)

    def _fact(self, mount: MountPoint, roles: tuple[str, ...], deadline: float) -> DiskFact:
        space, hung_since, error = _Space(read_only=mount.read_only or None), None, None
        timeout = min(self._timeout, max(_MIN_TIMEOUT_SECONDS, deadline - self._clock.monotonic()))
        try:
            # The device number is part of the key: a new mount must not wait for a call into the dead one.
            key = f"{decoded(mount.number)} {decoded(mount.point)}"
            space = self._guard.call(key, lambda: _measure(mount, self._paths.rootfs), timeout)
        except HungError as hung:
            hung_since = hung.since
        except OSError as failure:
            error = failure.strerror or str(failure)
        return DiskFact(
            mount=decoded(mount.point),
            device=decoded(mount.source),
            fstype=decoded(mount.fstype),
            roles=roles,
            size_bytes=space.size,
            used_bytes=space.used,
            available_bytes=space.available,
            inodes=space.inodes,
            inodes_used=space.inodes_used,
            read_only=space.read_only,
            hung_since=hung_since,
            error=error,
        )

    def _roles(self, mounts: Mounts) -> dict[MountPoint, tuple[str, ...]]:
        runtimes = self._runtime_roots()
        kubelet, *roots = self._resolved((self._paths.kubelet, *runtimes))
        holds: dict[str, set[MountPoint | None]] = {
            "system": {mounts.disk_holding(b"/")},
            "runtime": {mounts.disk_holding(root) for root in roots if root},
            "kubelet": {mounts.disk_holding(kubelet) if kubelet else None},
            "nas": {mount if mount.is_network else None for mount in mounts.disks},
        }
        return {
            mount: tuple(role for role, held_by in holds.items() if mount in held_by) or ("data",)
            for mount in mounts.disks
        }

    def _resolved(self, paths: tuple[str, ...]) -> list[bytes | None]:
        """Paths of the node without links; None if missing. /var/lib/docker is often a link."""
        names = [node_path(self._paths.rootfs, path) for path in paths]
        try:
            return self._guard.call(
                "roots", lambda: [_resolve(self._paths.rootfs, name) for name in names], self._timeout
            )
        except HungError:
            return list(names)  # on a hung mount; without resolving links they most likely name the right disk

    def _log_omitted(self, omitted: int) -> None:
        if omitted != self._omitted and omitted:
            log.warning("too many filesystems: %d are omitted", omitted)
        self._omitted = omitted


def _resolve(rootfs: str, path: bytes) -> bytes | None:
    try:
        return resolve_links(rootfs, path)
    except OSError:
        return None


def _measure(mount: MountPoint, rootfs: str) -> _Space:
    """Space of a mount. Raise OSError, also if another filesystem hides it."""
    path = host_path(rootfs, mount.point)
    space = os.statvfs(path)
    mount.check_device(os.stat(path).st_dev)
    unit, sized, counted = space.f_frsize, space.f_blocks > 0, space.f_files > 0
    return _Space(
        size=space.f_blocks * unit if sized else None,
        used=(space.f_blocks - space.f_bfree) * unit if sized else None,
        available=space.f_bavail * unit if sized else None,
        inodes=space.f_files if counted else None,
        inodes_used=space.f_files - space.f_ffree if counted else None,
        read_only=mount.read_only or bool(space.f_flag & os.ST_RDONLY),
    )
