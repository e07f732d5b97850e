"""Disks: how full every real filesystem of the node is, and what it serves."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from monitor.agent.guard import Guard, HungError
from monitor.agent.mountinfo import Mount, Mounts, MountTable, below, label, on_node, resolve
from monitor.agent.settings import Paths
from monitor.base.clock import Clock
from monitor.facts import DiskFact

log = logging.getLogger(__name__)

# Once this many seconds of a pass went to mounts that do not answer, the rest of them get only a moment each: when a
# NAS with dozens of exports dies, the local disks' figures still arrive in time.
_PATIENCE = 6.0
_MOMENT = 0.05


class _Space(NamedTuple):
    """What statvfs says, in our units. One that gives 0 as its size (some FUSE) or 0 inodes does not count them."""

    read_only: bool | None = None
    size: int | None = None
    used: int | None = None
    available: int | None = None
    inodes: int | None = None
    inodes_used: int | None = None


class DiskCollector:
    """Reads every disk under a limit of its own: one that hangs is reported as such and costs the others nothing."""

    name = "disk"

    def __init__(
        self,
        paths: Paths,
        runtime_roots: Callable[[], tuple[str, ...]],
        clock: Clock = time,
        per_mount_limit: float = 2.0,
    ) -> None:
        self._paths = paths
        self._runtime_roots = runtime_roots
        self._clock = clock
        self._limit = per_mount_limit
        self._guard = Guard("disk", clock)
        self._table = MountTable(paths.proc, clock)
        self._left_out = 0

    def collect(self) -> tuple[DiskFact, ...]:
        """Return all disks, the system's first. Raise OSError when the node's mounts cannot be read."""
        mounts = self._table.read()
        self._tell_left_out(mounts.left_out)
        roles = self._roles(mounts)
        began = self._clock.monotonic()
        return tuple(self._fact(mount, roles[mount], began) for mount in mounts.disks)

    def _fact(self, mount: Mount, roles: tuple[str, ...], began: float) -> DiskFact:
        space, hung_since, error = _Space(read_only=mount.read_only or None), None, None
        patience_left = began + _PATIENCE - self._clock.monotonic()
        limit = min(self._limit, max(_MOMENT, patience_left))
        try:
            # The device number is part of the key: a mount made anew must not wait for a call into the dead one.
            key = f"{label(mount.number)} {label(mount.point)}"
            space = self._guard.call(key, lambda: _measure(mount, self._paths.rootfs), limit)
        except HungError as hung:
            hung_since = hung.since
        except OSError as failure:
            error = failure.strerror or str(failure)
        return DiskFact(
            mount=label(mount.point),
            device=label(mount.source),
            fstype=label(mount.fstype),
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

    def _roles(self, mounts: Mounts) -> dict[Mount, tuple[str, ...]]:
        runtimes = self._runtime_roots()
        kubelet, *roots = self._resolved((self._paths.kubelet, *runtimes))
        holds: dict[str, set[Mount | None]] = {
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
        """Given paths of the node, return them without links (None: not there). /var/lib/docker often is a link."""
        names = [on_node(self._paths.rootfs, path) for path in paths]
        try:
            return self._guard.call(
                "roots", lambda: [_resolve(self._paths.rootfs, name) for name in names], self._limit
            )
        except HungError:
            return list(names)  # they lead through a mount that hangs; as written they still name the right disk

    def _tell_left_out(self, left_out: int) -> None:
        if left_out != self._left_out and left_out:
            log.warning("too many filesystems: %d are left out", left_out)
        self._left_out = left_out


def _resolve(rootfs: str, path: bytes) -> bytes | None:
    try:
        return resolve(rootfs, path)
    except OSError:
        return None


def _measure(mount: Mount, rootfs: str) -> _Space:
    """Given a mount, return its space. Raise OSError, also when another filesystem answers in its place."""
    path = below(rootfs, mount.point)
    space = os.statvfs(path)
    mount.check_seen_as(os.stat(path).st_dev)
    unit, sized, counted = space.f_frsize, space.f_blocks > 0, space.f_files > 0
    return _Space(
        size=space.f_blocks * unit if sized else None,
        used=(space.f_blocks - space.f_bfree) * unit if sized else None,
        available=space.f_bavail * unit if sized else None,
        inodes=space.f_files if counted else None,
        inodes_used=space.f_files - space.f_ffree if counted else None,
        read_only=mount.read_only or bool(space.f_flag & os.ST_RDONLY),
    )
