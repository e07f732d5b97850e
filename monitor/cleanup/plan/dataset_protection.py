"""Which protection covers a unit of a dataset root: the first that does, as a word. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from monitor.cleanup.plan.references import VolumeUse
from monitor.cleanup.plan.select import Protection
from monitor.cleanup.policy import DatasetPolicy
from monitor.facts.datasets import UnitFact, path_text
from monitor.facts.storage import DiskFact

PROTECTIONS = ("pinned", "owner-kept", "in-use", "needed", "too-young", "unknown", "refused-lately")


@dataclass(frozen=True)
class DatasetUses:
    """Who uses what below a root, besides what its own scan saw.

    `volumes` are those of live pods and of templates. `elsewhere` names the node on which a unit (by its path) is open.
    `unseen` are nodes that mount the root and do not tell, `unknown` kinds of object that could not be listed: as long
    as there is one of either, nobody knows.
    """

    volumes: tuple[VolumeUse, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class MountedPaths:
    """The directories below a root that pods and templates have, relative to it; "" is the root as a whole.

    `above` are all directories that contain one of them.
    """

    by_path: Mapping[str, str]
    above: Mapping[str, str]

    def user_of(self, path: str) -> str | None:
        """Given a unit, return who has it as a volume: it, a directory above it, or one in it."""
        whole = next((self.by_path[head] for head in ("", *_prefixes(path)) if head in self.by_path), None)
        return whole if whole is not None else self.above.get(path)


def mounted_paths(policy: DatasetPolicy, uses: DatasetUses, disk: DiskFact | None) -> MountedPaths:
    """Given all volumes, return those that are below the root, or above it if that counts."""
    places = (_normalized(policy.root), _exported_path(policy.root, disk))
    by_path: dict[str, str] = {}
    for volume in uses.volumes:
        root = places[volume.server is not None]
        relative = _relative(_normalized(volume.path), root) if root is not None else None
        if relative is None or (relative == "" and not policy.whole_root_is_use):
            continue
        by_path.setdefault(relative, volume.who)
    return MountedPaths(by_path, {head: who for path, who in by_path.items() for head in _prefixes(path)})


def dataset_protection(
    unit: UnitFact, policy: DatasetPolicy, uses: DatasetUses, volumes: MountedPaths, now: float
) -> Protection | None:
    """Given a unit, return what protects it; None if nothing does."""
    return (
        _pinned(unit, policy)
        or _in_use(unit, uses)
        or _volume(unit, volumes)
        or (Protection("unknown", unit.errors[0] if unit.errors else None) if unit.failures or unit.errors else None)
        or (Protection("too-young") if now - last_use(unit) < policy.min_age else None)
    )


def last_use(unit: UnitFact) -> float:
    """Return when a unit was last used, by all that its times tell. An unpacked archive has old ones of its own."""
    return max(unit.newest_mtime, unit.newest_ctime, unit.newest_atime or 0.0)


def owner_of(unit: UnitFact) -> str:
    """Return whose a unit is: a user without a name is known by the number."""
    return unit.owner or str(unit.owner_uid)


def _pinned(unit: UnitFact, policy: DatasetPolicy) -> Protection | None:
    if unit.pinned:
        return Protection("pinned", ".keep")
    names = (unit.path, f"{policy.root.rstrip('/')}/{unit.path}")
    pin = next((pin for pin in policy.pins if any(fnmatchcase(name, pin) for name in names)), None)
    if pin is not None:
        return Protection("pinned", pin)
    owners = {owner_of(unit), str(unit.owner_uid)}
    kept = any(fnmatchcase(owner, pattern) for owner in owners for pattern in policy.owners_kept)
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
    who = volumes.user_of(unit.path)
    return Protection("needed", who) if who is not None else None


def _normalized(path: str) -> str:
    """Given a path as people write it, return it as scans do."""
    return path_text(posixpath.normpath(f"/{path}").lstrip("/").encode("utf-8", "surrogateescape"))


def _exported_path(root: str, disk: DiskFact | None) -> str | None:
    """Given a root on a network filesystem, return what its server calls it; None if it is on none.

    Which server it is does not count: one server has many names, and one volume too many is the lesser mistake.
    """
    if disk is None or ":/" not in disk.device:
        return None
    below = _relative(_normalized(root), _normalized(disk.mount))
    # A server may have colons in its name: an IPv6 address, monitors with their ports.
    return _normalized(f"{disk.device.partition(':/')[2]}/{below}") if below is not None else None


def _relative(path: str, root: str) -> str | None:
    """Given a path and a root, return the path below the root: "" if it is the root or above it, None if neither."""
    if root == path or path == "" or root.startswith(f"{path}/"):
        return ""
    return path.removeprefix(root).removeprefix("/") if root == "" or path.startswith(f"{root}/") else None


def _prefixes(path: str) -> Iterator[str]:
    """Given `a/b/c`, yield `a`, `a/b` and `a/b/c`."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        yield "/".join(parts[:end])
