"""The protection of a unit of a dataset root: the first that applies."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from monitor.base.globs import matches_any_glob, matches_glob
from monitor.cleanup.plan.references import VolumeUse
from monitor.cleanup.plan.select import Protection
from monitor.cleanup.policy import DatasetPolicy
from monitor.facts.datasets import UnitFact, path_text
from monitor.facts.storage import DiskFact

PROTECTIONS = ("pinned", "owner-kept", "in-use", "needed", "too-young", "unknown", "refused-lately", "kept")


@dataclass(frozen=True)
class DatasetUses:
    """Uses of a root besides those that its own scan found.

    `volumes` are those of live pods and templates. `elsewhere` maps the path of a unit to another node that has it
    open. `unseen` are nodes that mount the root and did not answer, `unknown` the resources that could not be listed:
    unless both are empty, the uses are incomplete.
    """

    volumes: tuple[VolumeUse, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class MountedPaths:
    """Directories below a root that pods and templates mount, relative to the root; "" is the whole root.

    `above` are all directories that contain one of them.
    """

    by_path: Mapping[str, str]
    above: Mapping[str, str]

    def user_of(self, path: str) -> str | None:
        """The pod or template that mounts a unit, a directory above it, or a directory in it."""
        whole = next((self.by_path[prefix] for prefix in ("", *_prefixes(path)) if prefix in self.by_path), None)
        return whole if whole is not None else self.above.get(path)


def mounted_paths(policy: DatasetPolicy, uses: DatasetUses, disk: DiskFact | None) -> MountedPaths:
    """Mounted directories below a policy's root, or above it where the policy counts those."""
    roots = (_normalized(policy.root), _exported_path(policy.root, disk))
    by_path: dict[str, str] = {}
    for volume in uses.volumes:
        root = roots[volume.server is not None]
        relative = _relative(_normalized(volume.path), root) if root is not None else None
        if relative is None or (relative == "" and not policy.whole_root_is_use):
            continue
        by_path.setdefault(relative, volume.referrer)
    return MountedPaths(by_path, {prefix: user for path, user in by_path.items() for prefix in _prefixes(path)})


def dataset_protection(
    unit: UnitFact, policy: DatasetPolicy, uses: DatasetUses, volumes: MountedPaths, now: float
) -> Protection | None:
    """The protection of a unit; None if it is unprotected."""
    return (
        _pinned(unit, policy)
        or _in_use(unit, uses)
        or _volume(unit, volumes)
        or (Protection("unknown", unit.errors[0] if unit.errors else None) if unit.failures or unit.errors else None)
        or (Protection("too-young") if now - last_use(unit) < policy.min_age else None)
    )


def last_use(unit: UnitFact) -> float:
    """When a unit was last used, by all of its times: unpacking an archive restores old modification times."""
    return max(unit.newest_mtime, unit.newest_ctime, unit.newest_atime or 0.0)


def owner_of(unit: UnitFact) -> str:
    """Owner of a unit, by name or else by uid."""
    return unit.owner or str(unit.owner_uid)


def _pinned(unit: UnitFact, policy: DatasetPolicy) -> Protection | None:
    if unit.pinned:
        return Protection("pinned", ".keep")
    names = (unit.path, f"{policy.root.rstrip('/')}/{unit.path}")
    pin = next((pin for pin in policy.pins if any(matches_glob(name, pin) for name in names)), None)
    if pin is not None:
        return Protection("pinned", pin)
    owners = {owner_of(unit), str(unit.owner_uid)}
    kept = any(matches_any_glob(owner, policy.owners_kept) for owner in owners)
    return Protection("owner-kept", owner_of(unit)) if kept else None


def _in_use(unit: UnitFact, uses: DatasetUses) -> Protection | None:
    if unit.in_use_by is None:
        return Protection("unknown")
    if unit.in_use_by:
        first = unit.in_use_by[0]
        return Protection("in-use", first.how if first.pid is None else f"{first.how} {first.pid}")
    node = uses.elsewhere.get(unit.path)
    return Protection("in-use", node) if node is not None else None


def _volume(unit: UnitFact, volumes: MountedPaths) -> Protection | None:
    user = volumes.user_of(unit.path)
    return Protection("needed", user) if user is not None else None


def _normalized(path: str) -> str:
    """A path in the form that scans report."""
    return path_text(posixpath.normpath(f"/{path}").lstrip("/").encode("utf-8", "surrogateescape"))


def _exported_path(root: str, disk: DiskFact | None) -> str | None:
    """Path of a root on the server that exports it; None if the root is on a local disk.

    The server's name is ignored: a server has many names, and matching a volume too many is the lesser mistake.
    """
    if disk is None or ":/" not in disk.device:
        return None
    below = _relative(_normalized(root), _normalized(disk.mount))
    # The server part may contain colons: an IPv6 address, Ceph monitors with ports.
    return _normalized(f"{disk.device.partition(':/')[2]}/{below}") if below is not None else None


def _relative(path: str, root: str) -> str | None:
    """The path relative to the root: "" for the root or a directory above it, None if it is elsewhere."""
    if root == path or path == "" or root.startswith(f"{path}/"):
        return ""
    return path.removeprefix(root).removeprefix("/") if root == "" or path.startswith(f"{root}/") else None


def _prefixes(path: str) -> Iterator[str]:
    """`a`, `a/b` and `a/b/c` for `a/b/c`."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        yield "/".join(parts[:end])
