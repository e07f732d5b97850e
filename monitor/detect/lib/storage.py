"""Shared by the storage rules: how full disks are, what is on them, and who owns it."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.detect.labels import label_value
from monitor.detect.subjects import ClusterDisk
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.storage import DiskFact
from monitor.facts.text import Text, Value
from monitor.facts.workload import ContainerFact


def used_ratio(fact: DiskFact) -> float | None:
    """Fullness as df shows it: blocks reserved for root count as used."""
    if fact.used_bytes is None or fact.available_bytes is None or fact.used_bytes + fact.available_bytes <= 0:
        return None
    return fact.used_bytes / (fact.used_bytes + fact.available_bytes)


def disk_values(disk: ClusterDisk, **more: Value) -> dict[str, Value]:
    """Values that identify a disk in a text."""
    return {"place": disk.location, "mount": disk.labels["mount"], **more}


def space_evidence(fact: DiskFact) -> Text:
    """Used, total and available space of a disk."""
    space = {"used": fact.used_bytes or 0, "size": fact.size_bytes or 0, "available": fact.available_bytes or 0}
    return Text("disk-space", {**space})


def is_within(path: str, mount: str) -> bool:
    """Whether a path is a mount point or below it."""
    return path == mount or path.startswith(mount.rstrip("/") + "/")


def disk_containing(path: str, facts: Iterable[DiskFact]) -> DiskFact | None:
    """The disk that contains a path."""
    holding = [fact for fact in facts if is_within(path, fact.mount)]
    return max(holding, key=lambda fact: len(fact.mount), default=None)


def is_below(path: str, disk: DiskFact, facts: Iterable[DiskFact]) -> bool:
    """Whether a path is on this one of the disks."""
    holding = disk_containing(path, facts)
    return holding is not None and holding.mount == disk.mount


def container_owner(container: ContainerFact, facts: ClusterFacts) -> tuple[str, str]:
    """Pod of a container (or else its own name) and its user (or else namespace, or else "-")."""
    name = f"{container.namespace}/{container.pod_name}" if container.pod_name else container.name or container.id[:12]
    user = facts.container_user(container) or container.namespace or "-"
    return label_value(name), label_value(user)
