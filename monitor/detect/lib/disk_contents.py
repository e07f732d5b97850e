"""What fills a disk: images, writable layers, logs, volumes or datasets, and who owns it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from monitor.detect.lib.storage import container_owner, is_below
from monitor.detect.subjects import ClusterDisk, NodeReport
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.storage import DiskFact, ImageFact
from monitor.facts.text import Text, Value

CAUSES = ("images", "container-layers", "logs", "volumes", "datasets", "other")
_MAIN_PART_RATIO = 0.3  # a known part this large is the cause even if the unknown remainder is larger
_MIN_PART_RATIO = 0.01  # of the used bytes; smaller parts are not reported
_MAX_NAMED = 3  # owners, and images
_MAX_NAMED_USERS = 3


@dataclass(frozen=True)
class DiskContents:
    """What is on a disk. `cause` is the part that fills it; `parts` are bytes by kind, including the remainder."""

    cause: str
    parts: dict[str, int]
    evidence: tuple[Text, ...]


def disk_contents(disk: ClusterDisk, facts: ClusterFacts) -> DiskContents:
    """Known contents of a disk."""
    used = disk.fact.used_bytes or 0
    known = {} if disk.shared else _parts(disk.report, disk.fact)
    rest = max(0, used - sum(known.values()))
    rest_name = "datasets" if {"data", "nas"} & set(disk.fact.roles) else "other"
    largest = max(known, key=lambda name: known[name], default=rest_name)
    is_main = known.get(largest, 0) >= rest or known.get(largest, 0) >= _MAIN_PART_RATIO * used
    parts = known | {rest_name: rest}
    evidence = [
        Text(key=f"disk-part.{name}", values={"bytes": size, "share": min(1.0, size / used)})
        for name, size in sorted(parts.items(), key=lambda item: -item[1])
        if used and size >= _MIN_PART_RATIO * used
    ]
    if not disk.shared:
        evidence += _owner_evidence(disk.report, disk.fact, facts, used)
        evidence += _image_evidence(disk.report, disk.fact, facts, used)
    return DiskContents(largest if is_main and known.get(largest) else rest_name, parts, tuple(evidence))


def _parts(report: NodeReport, fact: DiskFact) -> dict[str, int]:
    """Bytes by kind on a disk of a node, as far as known."""
    sizes: Counter[str] = Counter()
    runtimes = {cache.runtime for cache in report.snapshot.images or () if is_on_disk(report, cache.root, fact)}
    for cache in report.snapshot.images or ():
        if cache.runtime in runtimes:
            sizes["images"] += cache.total_bytes or 0
    for usage in report.snapshot.runtime_usage or ():
        if usage.runtime in runtimes:
            sizes["images"] += usage.build_cache_bytes or 0
            sizes["container-layers"] += usage.writable_bytes or sum(usage.writable.values())
            sizes["volumes"] += sum(volume.size_bytes or 0 for volume in usage.volumes)
    sizes["logs"] += sum(_logs(report, fact).values())
    return {name: size for name, size in sizes.items() if size > 0}


def is_on_disk(report: NodeReport, root: str | None, fact: DiskFact) -> bool:
    """Whether a runtime's root is on this disk. Symlinks do not matter if only one disk serves runtimes."""
    serving = [disk for disk in report.snapshot.disk or () if "runtime" in disk.roles]
    if len(serving) == 1 or root is None:
        return "runtime" in fact.roles
    return is_below(root, fact, report.snapshot.disk or ())


def _logs(report: NodeReport, fact: DiskFact) -> dict[str, int]:
    """Size of each container log on this disk."""
    roots = {cache.runtime: cache.root for cache in report.snapshot.images or ()}
    disks, sizes = report.snapshot.disk or (), {}
    for log in report.snapshot.logs or ():
        container = report.containers.get(log.container_id)
        if container is None or container.log_path is None or not log.size_bytes:
            continue
        root = roots.get(container.runtime)
        in_root = bool(root) and container.log_path.startswith(f"{root}/")
        if is_on_disk(report, root, fact) if in_root else is_below(container.log_path, fact, disks):
            sizes[log.container_id] = log.size_bytes
    return sizes


def _owner_evidence(report: NodeReport, fact: DiskFact, facts: ClusterFacts, used: int) -> list[Text]:
    """Pods with the largest writable layers and logs on this disk."""
    logs, layers = _logs(report, fact), _layers(report, fact)
    written: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for kind, sizes in (("log", logs), ("layer", layers)):
        for container_id, size in sizes.items():
            if container := report.containers.get(container_id):
                written[container_owner(container, facts)][kind] += size
    largest = sorted(written.items(), key=lambda item: (-item[1].total(), item[0]))[:_MAX_NAMED]
    return [
        Text(key="disk-owner", values={"pod": pod, "user": user, "layer": sizes["layer"], "log": sizes["log"]})
        for (pod, user), sizes in largest
        if sizes.total() >= _MIN_PART_RATIO * used
    ]


def _layers(report: NodeReport, fact: DiskFact) -> dict[str, int]:
    roots = {cache.runtime: cache.root for cache in report.snapshot.images or ()}
    return {
        container_id: size
        for usage in report.snapshot.runtime_usage or ()
        if is_on_disk(report, roots.get(usage.runtime), fact)
        for container_id, size in usage.writable.items()
    }


def _image_evidence(report: NodeReport, fact: DiskFact, facts: ClusterFacts, used: int) -> list[Text]:
    """Largest images on this disk, and who uses them."""
    images = [
        image
        for cache in report.snapshot.images or ()
        if is_on_disk(report, cache.root, fact)
        for image in cache.images
        if (image.size_bytes or 0) >= max(1, _MIN_PART_RATIO * used)
    ]
    images.sort(key=lambda image: (-(image.size_bytes or 0), image.id))
    return [image_evidence(image, report, facts) for image in images[:_MAX_NAMED]]


def image_name(image: ImageFact) -> str:
    """The image's tag, or else its ID."""
    return min((name for name in image.names if "<none>" not in name), default=image.id[:19])


def image_users(image: ImageFact, report: NodeReport, facts: ClusterFacts) -> list[str]:
    """Pods that use an image on a node, with their users."""
    used_by = [report.containers[container] for container in image.containers if container in report.containers]
    owners = {container_owner(container, facts) for container in used_by if not container.sandbox}
    return sorted(f"{pod} ({user})" for pod, user in owners)


def image_evidence(image: ImageFact, report: NodeReport, facts: ClusterFacts) -> Text:
    """An image and who uses it, as evidence."""
    values: dict[str, Value] = {"image": image_name(image), "bytes": image.size_bytes or 0}
    if users := image_users(image, report, facts) or [container[:12] for container in image.containers]:
        return Text(key="disk-image.used", values=values | {"users": join_names(users)})
    return Text(key="disk-image.local" if image.local else "disk-image.unused", values=values)


def join_names(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" +{len(names) - _MAX_NAMED_USERS}" if len(names) > _MAX_NAMED_USERS else ""
    return ", ".join(names[:_MAX_NAMED_USERS]) + more
