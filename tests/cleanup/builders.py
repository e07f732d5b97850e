"""Images, units, pods and nodes in one line each, and assertions on plans."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from monitor.cleanup.model import CleanupPlan
from monitor.cleanup.plan.references import References
from monitor.facts.datasets import ScanFact, UnitFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact, ImageCacheFact, ImageFact
from monitor.facts.workload import ContainerFact
from monitor.i18n import LANGUAGES, say

NOW = 1_763_260_000.0
GIB = 1024**3
DAY = 86400.0
NO_REFERENCES = References({})


def disk(used: float = 90, size: float = 100, mount: str = "/", **more: Any) -> DiskFact:
    """A disk, in GiB."""
    fields: dict[str, Any] = {
        "device": "/dev/sda1", "fstype": "ext4", "roles": ("system", "runtime"), "size_bytes": round(size * GIB),
        "used_bytes": round(used * GIB), "available_bytes": round((size - used) * GIB),
    }  # fmt: skip
    return DiskFact(mount=mount, **(fields | more))


def image(name: str | None = "lab/a:1", size: float = 10, days: float | None = 30, **more: Any) -> ImageFact:
    """An image; `size` in GiB, `days` since its last use (None: never used)."""
    fields: dict[str, Any] = {
        "id": f"sha256:{crc32((name or '').encode()):064x}",
        "names": (name,) if name else (),
        "size_bytes": round(size * GIB),
        "unique_bytes": round(size * GIB),
        "first_seen_at": NOW - 400 * DAY,
        "last_used_at": None if days is None else NOW - days * DAY,
    }
    return ImageFact(**(fields | more))


def container(name: str, image_name: str | None = None, **more: Any) -> ContainerFact:
    fields: dict[str, Any] = {"id": f"id-{name}", "runtime": "docker", "state": "running", "name": name}
    return ContainerFact(image=image_name, **(fields | more))


def snapshot(*images: ImageFact, containers: tuple[ContainerFact, ...] | None = (), **more: Any) -> NodeSnapshot:
    """A node with Docker."""
    total = sum(image.unique_bytes or image.size_bytes or 0 for image in images)
    cache = ImageCacheFact(runtime="docker", images=images, root="/var/lib/docker", total_bytes=total)
    fields: dict[str, Any] = {"disk": (disk(),), "images": (cache,)}
    return NodeSnapshot(node="n1", at=NOW, agent_version="0", containers=containers, **(fields | more))


def unit(path: str = "zhang/datasets/a", size: float = 10, days: float = 100, **more: Any) -> UnitFact:
    """A directory; `size` in GiB, `days` since its last use."""
    at = NOW - days * DAY
    fields: dict[str, Any] = {
        "kind": "dir", "device": 5, "inode": crc32(path.encode()), "owner_uid": 1001, "owner": "zhang",
        "allocated_bytes": round(size * GIB), "apparent_bytes": round(size * GIB), "files": 7,
        "newest_atime": at, "newest_mtime": at - DAY, "newest_ctime": at - DAY, "in_use_by": (),
    }  # fmt: skip
    return UnitFact(root="/mnt/share", path=path, **(fields | more))


def scan(*units: UnitFact, **more: Any) -> ScanFact:
    fields: dict[str, Any] = {"started_at": NOW - 60, "finished_at": NOW - 10, "atime_usable": True}
    return ScanFact(root="/mnt/share", units=units, **(fields | more))


def names(plan: CleanupPlan) -> list[str]:
    """Names of the items of a plan, after checking its texts."""
    check_texts(plan)
    return [item.name for item in plan.items]


def kept(plan: CleanupPlan) -> dict[str, str]:
    """Protections of the kept items, by name."""
    check_texts(plan)
    return {item.name: item.protection for item in plan.kept}


def refused(plan: CleanupPlan) -> str | None:
    """Reason code of a refused plan."""
    check_texts(plan)
    assert plan.refused is None or plan.items == ()
    return plan.refused.key.removeprefix("cleanup.refused.") if plan.refused else None


def check_texts(plan: CleanupPlan) -> None:
    """All texts of a plan exist in all languages."""
    texts = [item.why for item in plan.items] + ([plan.refused] if plan.refused else []) + list(plan.warnings)
    for lang in LANGUAGES:
        for text in texts:
            assert say(lang, text.key, text.values).isprintable()
        for kept_item in plan.kept:
            assert say(lang, f"cleanup.kept.{kept_item.protection}", {})
        for item in plan.items:
            assert say(lang, f"cleanup.risk.{item.risk}", {})
        if plan.capped_by:
            assert say(lang, f"cleanup.capped.{plan.capped_by}", {})
